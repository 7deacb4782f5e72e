"""olmo-eval's tasks beside what its own code made of the same rows: prompts, golds, values, verdicts."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from transformers import AutoModelForCausalLM

from evaluation.grading.tiers import SCHEMA
from evaluation.metrics.measures import greedy
from evaluation.prefill.tiers import PREFILLS
from evaluation.providers.adapters.olmo_eval_tasks import NORMALIZATIONS
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_requests
from evaluation.scoring.engine.window import Request
from evaluation.tokenizers.encoding import encode_pairs
from evaluation.tokenizers.loading import load_tokenizer
from tests.metrics.summaries import choice_measures, summarize_choices
from tests.providers.conftest import planned
from tests.providers.olmo_eval import Line, answers, asked, settings
from tests.workflow.world import World

REFUSED = "multipl_e"


def read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def pairs_of(question: Line) -> list[tuple[str, str]]:
    """Each continuation with its context."""
    texts = question["continuations"]
    contexts = question["continuation_prompts"] or [question["prompt"]] * len(texts)
    return list(zip(contexts, texts, strict=True))


def with_questions(shared: Path, reference: dict[str, list[Line]]) -> Iterator[tuple[Line, Line]]:
    """Lines of what a model gave, each with its question."""
    numbers: Counter[str] = Counter()
    for line in read(shared / "reference/olmobase/scores.jsonl"):
        if "values" in line:
            yield line, reference[line["task"]][numbers[line["task"]]]
            numbers[line["task"]] += 1


@pytest.fixture(scope="module")
def reference(shared: Path) -> dict[str, list[Line]]:
    """The reference requests, by task."""
    files = (shared / "reference/olmobase").glob("*.jsonl")
    found = [read(path) for path in sorted(files) if path.stem not in ("scores", "verdicts")]
    return {lines[0]["task"]: lines for lines in found}


def python_of(task: str) -> str | None:
    return sys.executable if task.startswith(("bigcodebench", "ds1000")) else None


def test_prompts_are_those_of_olmo_evals_own_code(
    reference: dict[str, list[Line]], mirrors: dict[str, str], tmp_path: Path
) -> None:
    kinds = {"loglikelihood": "choices"}
    requests = [
        asked(mirrors, task, kinds.get(one["request_type"], "generative"), python=python_of(task))
        for task, (one, *_) in reference.items()
    ]
    counts = {"tasks": 0, "prompts": 0, "refused": 0}
    for request, answer in zip(requests, answers(requests, tmp_path), strict=True):
        task = request["task"]
        if task.startswith(REFUSED):
            assert " of olmo-eval is not supported, as its programs " in answer["refused"], task
            counts["refused"] += 1
            continue
        lines = reference[task]
        assert "lines" in answer, (task, answer)
        made = answer["lines"][: len(lines)]
        compare = same_question if request["kind"] == "choices" else same_prompt
        for mine, theirs in zip(made, lines, strict=True):
            compare(mine, theirs, answer["meta"])
            counts["prompts"] += 1
        counts["tasks"] += 1
    assert counts == {"tasks": 151, "prompts": 1195, "refused": 12}


def test_tasks_named_after_bits_per_byte_have_those_of_the_other_order_of_variants(
    reference: dict[str, list[Line]], mirrors: dict[str, str], tmp_path: Path
) -> None:
    names = ("arc_challenge", "arc_easy", "csqa", "piqa")
    kinds = {"ranked": False, "gold": True}
    requests = [
        asked(mirrors, f"{name}:bpb:olmo3base", "choices", gold_alone=alone)
        for name in names
        for alone in kinds.values()
    ]
    found = answers(requests, tmp_path)
    for name in names:
        ranked, gold = next(found), next(found)
        assert ranked["meta"]["primary"] in ("pmi", "per_char")
        assert f"{name}:bpb:olmo3base is named after bits per byte" in ranked["meta"]["remarks"][0]
        assert gold["meta"]["primary"] is None
        for mine, alone in zip(ranked["lines"], gold["lines"], strict=True):
            assert alone["choices"] == [mine["choices"][mine["right"]]]
        for mine, theirs in zip(gold["lines"], reference[f"{name}:olmo3base:bpb"], strict=False):
            same_question(mine, theirs, {"primary": "gold_bits_per_byte"})


def same_question(mine: Line, theirs: Line, meta: Line) -> None:
    pairs = [list(pair) for pair in pairs_of(theirs)]
    gold = theirs["gold_idx"]
    if meta["primary"] in ("gold_bits_per_byte", "greedy"):
        only = gold if len(pairs) > 1 else 0
        assert mine["choices"] == [pairs[only]], theirs["task"]
    else:
        assert mine["choices"] + (mine["unconditional"] or []) == pairs, theirs["task"]
        assert mine["right"] == gold, theirs["task"]


def same_prompt(mine: Line, theirs: Line, meta: Line) -> None:
    assert mine["prompt"] == theirs["prompt"]
    drawn = theirs["sampling"]
    assert meta["stop"] == (drawn["stop_sequences"] or [])
    assert meta["max_new_tokens"] == drawn["max_tokens"]
    if drawn["temperature"]:
        names = {"temperature": "temperature", "top_p": "top_p", "n": "num_samples"}
        assert meta["sampling"] == {name: drawn[theirs] for name, theirs in names.items()}
    else:
        assert meta["sampling"] == {}


def test_verdicts_are_those_of_olmo_evals_own_scorers(
    shared: Path, mirrors: dict[str, str], tmp_path: Path
) -> None:
    lines = read(shared / "reference/olmobase/verdicts.jsonl")
    by_task: dict[str, list[tuple[int, Line]]] = {}
    for line in lines:
        found = by_task.setdefault(line["task"], [])
        begins = bool(found) and line["kind"] == found[0][1]["kind"]
        found.append((found[-1][0] + begins if found else 0, line))
    requests = [
        asked(mirrors, task, "generative", cases=[(n, line["text"]) for n, line in found])
        for task, found in by_task.items()
    ]
    agree = 0
    for (task, found), answer in zip(by_task.items(), answers(requests, tmp_path), strict=True):
        for (_, line), scores in zip(found, answer["scores"], strict=True):
            given = {key.partition(":")[2]: value for key, value in scores.items()}
            assert given == line["scores"], (task, line["kind"])
            agree += 1
    assert agree == len(lines) == 671


def test_values_are_those_of_olmo_evals_own_metrics(
    shared: Path, reference: dict[str, list[Line]]
) -> None:
    """From the same log-probabilities: each question's accuracy, and its bits per byte."""
    counts = {"accuracy": 0, "bits_per_byte": 0, "greedy_accuracy": 0}
    for line, question in with_questions(shared, reference):
        place = (line["task"], question["prompt"])
        for metric, value in line["values"].items():
            name, _, key = metric.partition(":")
            if name in NORMALIZATIONS:
                found = summarize_choices(scored(question, line, name), NORMALIZATIONS[name])  # type: ignore[arg-type]
                assert found["ties"] == 0, place
                assert found["accuracy"] == value, place
                counts["accuracy"] += 1
            else:
                table = scored(question, line, name, alone=True)
                ours = choice_measures(table, "gold")["gold_bits_per_byte"]
                ours = greedy(table) if key == "greedy_accuracy" else ours
                assert ours[0] == pytest.approx(value, rel=1e-12), place
                counts[key] += 1
    assert counts == {"accuracy": 102, "bits_per_byte": 92, "greedy_accuracy": 6}


def test_log_probabilities_are_those_of_the_reference(
    shared: Path, reference: dict[str, list[Line]], smollm2: Path
) -> None:
    """Tokens of all, log-probabilities of every 12th instance; all of them with EVAL_ALL_REFERENCES."""
    tokenizer = load_tokenizer(smollm2, use_fast=True)
    asked: list[tuple[Request, float, bool]] = []
    for number, (line, question) in enumerate(with_questions(shared, reference)):
        encoded = encode_pairs(tokenizer, pairs_of(question))
        assert [one.continuation for one in encoded] == line["ids"], (line["task"], number)
        assert [len(one.context) for one in encoded] == line["context_ids"]
        if number % (1 if os.environ.get("EVAL_ALL_REFERENCES") else 12) == 0:
            requests = [Request(tuple(a), tuple(b), line["task"]) for a, b, _ in encoded]
            asked += zip(requests, line["logprobs"], line["greedy"], strict=True)
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    requests = [request for request, _, _ in asked]
    scores = score_requests(Engine(model, row_tokens=1024, device="cpu"), requests)
    for score, (request, logprob, is_greedy) in zip(scores, asked, strict=True):
        assert score.logprob == pytest.approx(logprob, abs=2e-3), request.name
        assert score.is_greedy == is_greedy, request.name


def scored(question: Line, line: Line, metric: str, *, alone: bool = False) -> pa.Table:
    """Candidates as a task's cache has them, with what a model gave; or the right one alone."""
    texts, given = question["continuations"], line["logprobs"]
    count = len(texts) // 2 if NORMALIZATIONS.get(metric) == "pmi" else len(texts)
    right = (question["gold_idx"] or 0) if count > 1 else 0
    columns = {
        "item": ["0"] * count,
        "question": ["0"] * count,
        "row": ["0"] * count,
        "cluster": [None] * count,
        "stratum": [None] * count,
        "candidate": list(range(count)),
        "gold": [number == right for number in range(count)],
        "logprob": given[:count],
        "unconditional": given[count:] or [None] * count,
        "tokens": list(map(len, line["ids"][:count])),
        "chars": list(map(len, texts[:count])),
        "bytes": [len(text.encode()) for text in texts[:count]],
        "is_greedy": line["greedy"][:count],
    }
    table = pa.Table.from_pydict(columns, schema=SCHEMA)
    return table.slice(right, 1) if alone else table


def test_a_right_answer_is_prefilled_with_all_its_bytes(
    world: World, mirrors: dict[str, str], reference: dict[str, list[Line]]
) -> None:
    """Spaces that a prompt ends in are scored with the answer, and are none of its bytes."""
    name = "mt_mbpp_python:bpb:olmo3base"
    tasks = {"theirs": {"provider": "olmo_eval", "task": name}}
    plan = planned(world, "tasks", tasks, {"objective": []}, **settings(mirrors))
    PREFILLS["tier3"].make(plan, "theirs")
    lines = read(plan.cache_folder("tier3", "theirs") / "examples.jsonl")
    assert len(lines) == len(reference[name])
    for mine, theirs in zip(lines, reference[name], strict=True):
        (candidate,), (answer,) = mine["candidates"], theirs["continuations"]
        assert mine["contexts"][0]["text"] == theirs["prompt"]
        assert theirs["prompt"].endswith("\n")
        assert (candidate["text"], candidate["bytes"]) == (answer, len(answer.encode()))
