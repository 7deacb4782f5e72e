"""Completions of other engines: read from four formats, and used as a checkpoint's own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.bridge.write import write_deltas
from evaluation.checkpoints.subjects import bridge_subject, step_subject
from evaluation.dependencies.making import make
from evaluation.dependencies.steps import COLLECT, SCORE
from evaluation.errors import ConfigError, EvaluationError, ScoringError
from evaluation.grading.by_hand import verify_by_hand
from evaluation.grading.imports import forget_completions, import_file
from evaluation.prefill.caches import read_prompts
from evaluation.records import record_path
from evaluation.results.read import read_results
from evaluation.scoring.completion_files import CompletionLine, read_completions
from evaluation.settings.plan import StagePlan
from tests.workflow.world import ANSWERED, FIRST_LETTER, LAST_LETTER, World, ask_for_answers

PROMPTS = {"sums/0": "Q: 1 A:", "sums/2": "Q: 2 A:"}
TEXTS = {"sums/0": ["a", "b é"], "sums/2": ["c\nd", ""]}

Write = Callable[[str, list[str]], list[dict[str, Any]]]


def own(id: str, texts: list[str]) -> list[dict[str, Any]]:
    return [{"id": id, "completion": text} for text in texts]


def harness(id: str, texts: list[str]) -> list[dict[str, Any]]:
    """As lm-evaluation-harness 0.4.9 logs samples of `generate_until`."""
    arguments = {"gen_args_0": {"arg_0": PROMPTS.get(id, "x"), "arg_1": {"until": ["\n"]}}}
    number = int(id.rpartition("/")[2])
    return [{"doc_id": number, "doc": {}, "target": "1", "arguments": arguments, "resps": [texts]}]


def older_harness(id: str, texts: list[str]) -> list[dict[str, Any]]:
    return [{**one, "arguments": [["other words", {}]]} for one in harness(id, texts)]


def batch(id: str, texts: list[str]) -> list[dict[str, Any]]:
    choices = [
        {"index": n, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
        for n, text in enumerate(texts)
    ]
    body = {"model": "m", "choices": choices[::-1]}
    return [{"custom_id": id, "response": {"status_code": 200, "body": body}, "error": None}]


def batch_with_null(id: str, texts: list[str]) -> list[dict[str, Any]]:
    """A reasoning model that was cut in its thinking has no text."""
    (row,) = batch(id, texts)
    for choice in row["response"]["body"]["choices"]:
        choice["message"]["content"] = choice["message"]["content"] or None
    return [row]


def outputs(id: str, texts: list[str]) -> list[dict[str, Any]]:
    return [{"request_id": id, "outputs": [{"index": n, "text": t} for n, t in enumerate(texts)]}]


FORMATS: dict[str, tuple[Write, str]] = {
    "ours": (own, "another engine"),
    "lm-eval": (harness, "lm_eval"),
    "lm-eval, by number": (older_harness, "lm_eval"),
    "batch": (batch, "openai_batch"),
    "batch, null": (batch_with_null, "openai_batch"),
    "vllm": (outputs, "vllm"),
}


def write(path: Path, make: Write, texts: dict[str, list[str]]) -> Path:
    rows = [row for id, own in texts.items() for row in make(id, own)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("form", FORMATS)
def test_all_formats_give_the_same_lines(form: str, tmp_path: Path) -> None:
    make, engine = FORMATS[form]
    found = read_completions(write(tmp_path / "a.jsonl", make, TEXTS), PROMPTS)
    assert found.engine == engine
    reason = "length" if "batch" in form else None
    assert found.lines == [
        CompletionLine(id, sample, text, reason)
        for id, own in TEXTS.items()
        for sample, text in enumerate(own)
    ]


FILTERED = {"message": {"content": None}, "finish_reason": "content_filter"}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (harness("sums/7", ["a"])[0], r"neither its prompt nor `doc_id` 7 is one of the task's"),
        (batch("sums/7", ["a"])[0], "'sums/7' is not a prompt of the task"),
        ({"custom_id": "sums/0", "error": {"message": "busy"}}, r"this request failed .*busy"),
        ({"custom_id": "sums/0", "response": {"body": {"choices": [FILTERED]}}}, "needs the texts"),
        ({"id": "sums/0", "completion": "a", "sample": None}, "`sample` is None, not a number"),
    ],
)
def test_what_cannot_be_read_names_its_line(row: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(EvaluationError, match=rf"line 1.*{said}"):
        read_completions(path, PROMPTS)


TASK: dict[str, Any] = {
    **ANSWERED,
    "max_new_tokens": 6,
    "verifiers": {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    "stop": ["!"],
    "limit": 4,
    "sampling": {"temperature": 1.0, "n": 2},
}


def scored(plan: StagePlan) -> Any:
    """What Tier5's file says of the task of step 5."""
    subject = step_subject(plan, 5)
    assert make(SCORE, subject).error is None
    assert make(COLLECT, subject).error is None
    return read_results(subject.folder, ("tier5",)).tiers["tier5"].items["sums"].entry


def test_they_are_used_as_the_checkpoints_own(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ask_for_answers(world, {"sums": TASK})
    plans, subject = world.plans, step_subject(plan, 5)
    generated = scored(plan)
    assert generated.engine is None
    ids = [prompt.id for prompt in read_prompts(plan.cache_folder("tier5", "sums")).prompts]
    given = {id: ["a! and more", "b" * (n + 1)] for n, id in enumerate(ids)}
    path = write(tmp_path / "samples.jsonl", own, given)

    assert import_file(plans, plan, "5", "sums", path, ("other", "1.2")) == 8
    assert not record_path(subject.folder, SCORE).exists()
    with monkeypatch.context() as patch:
        patch.setattr("evaluation.scoring.lacking.completion_table", None)
        entry = scored(plan)  # nothing is generated
    about = {"name": "other", "version": "1.2", "imported": "samples.jsonl"}
    assert entry.engine.model_dump(exclude_none=True) == about
    assert entry.decoding["engine"] == "other"
    assert entry.pass_rate == 0.5
    lines = (subject.folder / "generation/sums/completions.jsonl").read_text().splitlines()
    found = [(one["completion"], one["stop_reason"]) for one in map(json.loads, lines)]
    assert found[:3] == [("a", "stop_string"), ("b", "eos"), ("a", "stop_string")]
    assert verify_by_hand(plan, "sums", path)[1]["verifiers"]["strict"]["pass_rate"] == 0.5

    bridge = bridge_subject(plan, plans)
    assert make(SCORE, bridge).error is None
    assert make(COLLECT, bridge).error is None
    write_deltas(plan, 5)
    notes = json.loads((subject.folder / "bridge_deltas.json").read_text())["notes"]
    assert (
        sum("sums are by other 1.2, those of the bridge by the built-in engine" in n for n in notes)
        == 1
    )

    again = write(tmp_path / "again.jsonl", own, {id: ["a", "a"] for id in ids})
    import_file(plans, plan, "5", "sums", again, (None, None))
    assert scored(plan).pass_rate == 1.0
    assert scored(plan).engine.name == "another engine"
    forget_completions(plans, plan, "5", "sums")
    entry = scored(plan)
    assert (entry.engine, entry.pass_rate) == (None, generated.pass_rate)
    with pytest.raises(ConfigError, match="no completions of sums were imported"):
        forget_completions(plans, plan, "5", "sums")


def test_fewer_or_more_than_the_task_asks_for(world: World, tmp_path: Path) -> None:
    plan = ask_for_answers(world, {"sums": TASK})
    ids = [prompt.id for prompt in read_prompts(plan.cache_folder("tier5", "sums")).prompts]
    for given, said in (
        ({ids[0]: ["a", "a"]}, r"6 of 8 completions are missing, such as sample 0 of"),
        (dict.fromkeys(ids, ["a"] * 3), r"4 completions more than the 2 .*n: 3"),
    ):
        path = write(tmp_path / "a.jsonl", own, given)
        with pytest.raises(ScoringError, match=said):
            import_file(world.plans, plan, "5", "sums", path, (None, None))
    with pytest.raises(ConfigError, match=r"no checkpoint '7'"):
        import_file(world.plans, plan, "7", "sums", path, (None, None))


def test_prompts_that_have_changed_since_are_told(world: World, tmp_path: Path) -> None:
    plan = ask_for_answers(world, {"sums": TASK})
    ids = [prompt.id for prompt in read_prompts(plan.cache_folder("tier5", "sums")).prompts]
    path = write(tmp_path / "a.jsonl", own, {id: ["a", "b"] for id in ids})
    import_file(world.plans, plan, "5", "sums", path, (None, None))
    plan = ask_for_answers(world, {"sums": {**TASK, "prompt": "Other: {{ question }}"}})
    with pytest.raises(
        ScoringError, match=r"8 of 8 completions are not among those imported from a\.jsonl"
    ):
        make(SCORE, step_subject(plan, 5))
