"""olmo-eval's tasks that run programs: judged in the sandbox as its own scorers judge what Python says."""

import logging
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.errors import SourceError
from evaluation.prefill.generation import lacking_tokens
from evaluation.providers.score import (
    CaseLimits,
    CaseOutcome,
    DecidingProgram,
    run_programs,
    verdict_of,
)
from evaluation.settings.provided import ProviderTask
from tests.providers.conftest import reported, verified
from tests.providers.olmo_eval import Line, answers, asked, by_olmo_eval, settings, theirs
from tests.tokenizers.wrapped import wrapped
from tests.verification.sandbox.references import needs_sandbox
from tests.workflow.world import World, ask_for_answers, build_tokenizer

Texts = Callable[[str, int, str, str], dict[str, str]]

HEADLINE = "pass_at_1:code_exec"
MAIN = '\n\nif __name__ == "__main__":\n    '
LEETCODE = ("max(nums)", "min(nums)", "sum(nums)", "len(nums)")
INSTANCES = {
    "humaneval:olmo3base": 56,
    "mbpp:olmo3base": 160,
    "deepseek_leetcode:olmo3base": 4,
    "humanevalfim_single:olmo3base": 4,
    "humanevalfim_multi:olmo3base": 4,
    "humanevalfim_random:olmo3base": 4,
}
FEW = 4
"""Instances of a task, unless all references are asked for."""


def texts_of(task: str, number: int, gold: str, other: str) -> dict[str, str]:
    """By kind, what a model might write; `other` is another instance's gold."""
    if task.startswith("deepseek"):
        gold, other = (f"        return {LEETCODE[n % 4]}\n" for n in (number, number + 1))
    found = {
        "gold": gold,
        "other": other,
        "half": gold[: len(gold) // 2],
        "empty": "",
        "none": "    return None\n",
        "no code": "I do not know.",
        "prose": f"{gold}\n```\nThis adds all of them.",
        "fence": f"```python\n{gold}\n```",
        "asks": f"{gold}\n\nname = input()\n",
        "main fails": f"{gold}{MAIN}raise SystemExit(3)\n",
        "main passes": f"{gold}{MAIN}print(len('done'))\n",
    }
    return found | ({"endless": f"{gold}\n\nwhile True:\n    pass\n"} if number == 0 else {})


def judged(
    mirrors: dict[str, str],
    tasks: list[str],
    folder: Path,
    texts: Texts,
    python: str | None = None,
    limit: int = FEW,
) -> list[Line]:
    """Each text by theirs and by ours: `texts` gives them for a number, its gold and the one before."""
    full = bool(os.environ.get("EVAL_ALL_REFERENCES"))
    limits = {task: INSTANCES.get(task, limit) if full else limit for task in tasks}
    requests = [
        asked(mirrors, task, "generative", limit=limits[task], python=python) for task in tasks
    ]
    cases = []
    for request, answer in zip(requests, answers(requests, folder), strict=True):
        golds = [line["gold"] for line in answer["lines"]]
        found = [
            (number, kind, text)
            for number, gold in enumerate(golds)
            for kind, text in texts(request["task"], number, gold, golds[number - 1]).items()
        ]
        request["cases"] = [(number, text) for number, _, text in found]
        cases += [
            {"task": request["task"], "number": number, "kind": kind} for number, kind, _ in found
        ]
    scores = [line for answer in answers(requests, folder) for line in answer["scores"]]
    outcomes = run_programs([_outcome(line) for line in scores], CaseLimits(10.0, 1024), 2, python)
    return [
        {**case, **line, "ours": ours}
        for case, line, ours in zip(cases, scores, outcomes, strict=True)
    ]


def _outcome(line: Line) -> CaseOutcome:
    if "program" not in line:
        return CaseOutcome(line["passed"])
    program = DecidingProgram(line["program"], line["tests"], line["seconds"], line["failed"])
    return CaseOutcome(line["passed"], program=program)


@needs_sandbox
def test_verdicts_are_those_of_their_scorers(mirrors: dict[str, str], tmp_path: Path) -> None:
    lines = judged(mirrors, list(INSTANCES), tmp_path, texts_of)
    wrong = [line for line in lines if line["ours"].scores != line["theirs"]]
    assert not wrong
    credits = Counter((one["task"], *one["theirs"].values()) for one in lines)
    assert set(credits) == {(task, credit) for task in INSTANCES for credit in (0.0, 1.0)}
    logging.getLogger(__name__).info("%d verdicts: %s", len(lines), credits)


@needs_sandbox
def test_what_olmo_eval_takes_for_right_without_a_test_is_wrong(
    mirrors: dict[str, str], tmp_path: Path
) -> None:
    """A program that ends before its tests has exit code 0, which is all that olmo-eval looks at."""

    def ends(_task: str, _number: int, gold: str, _other: str) -> dict[str, str]:
        return {"ends": f"{gold}\n\nimport os\nos._exit(0)\n"}

    for line in judged(mirrors, ["humaneval:olmo3base"], tmp_path, ends):
        assert line["theirs"] == {HEADLINE: 1.0}
        assert line["ours"].scores == {HEADLINE: 0.0}
        verdict = verdict_of(HEADLINE, line["ours"], "")
        assert verdict.credit == 0
        assert verdict.reason.startswith("the tests ended before the last one ")


@needs_sandbox
def test_a_task_from_the_suite_to_its_verdicts(
    world: World, mirrors: dict[str, str], tmp_path: Path
) -> None:
    name = "mbpp:olmo3base"
    plan = ask_for_answers(world, {"theirs": theirs(name, limit=2)}, **settings(mirrors))
    assert plan.suite.runs_programs
    meta = reported(plan, "theirs")
    assert meta["golds"] == {HEADLINE: 1.0}
    assert (meta["primary"], meta["sampling"]["n"]) == (HEADLINE, 32)
    right = (
        "def remove_Occ(s, c):\n    i, j = s.find(c), s.rfind(c)\n    s = s[:j] + s[j + 1 :]\n"
        "    return s[:i] + s[i + 1 :]\n"
    )
    wrong = "def remove_Occ(s, c):\n    return s\n"
    texts = [(0, f"{right}```\nIt works."), (0, wrong), (1, ""), (1, "I do not know.")]
    completions = [(f"{name}/{number}", text) for number, text in texts]
    rows, summary = verified(plan, "theirs", tmp_path, completions)
    verdicts = [row["verdicts"][HEADLINE] for row in rows]
    assert [verdict["credit"] for verdict in verdicts] == [1, 0, 0, 0]
    assert verdicts[1]["reason"].endswith("remove_Occ('hello', 'l') gave 'hello'")
    assert summary["primary"] == HEADLINE


PACKAGES = ("bigcodebench:olmo3base", "ds1000:olmo3base")


@needs_sandbox
def test_programs_that_use_packages_are_judged_as_there(
    mirrors: dict[str, str], tmp_path: Path
) -> None:
    def written(task: str, number: int, gold: str, other: str) -> dict[str, str]:
        return {
            "gold": gold,
            "other": other,
            "empty": "",
            "no code": "I do not know.",
            "ends": f"    import sys; sys.exit(0)\n{gold}",
            "raises": f"    raise KeyError(1)\n{gold}",
        } | ({"endless": "    while True:\n        pass\n"} if number == 0 else {})

    lines = judged(mirrors, list(PACKAGES), tmp_path, written, sys.executable)
    assert [line for line in lines if line["ours"].scores != line["theirs"]] == []
    passed = Counter((line["task"], line["kind"]) for line in lines if line["theirs"][HEADLINE])
    assert passed == {(task, kind): FEW for task in PACKAGES for kind in ("gold", "other")}
    assert {line["ours"].note for line in lines if line["theirs"][HEADLINE]} == {"unguarded"}


def test_code_is_filled_in_only_with_the_tokens_for_it(
    world: World, mirrors: dict[str, str], tmp_path: Path
) -> None:
    tasks = {"fim": theirs("humanevalfim_single:olmo3base")}
    said = (
        r"generation_tasks\.fim: the prompts of humanevalfim_single:olmo3base are made with "
        r"<\|fim_prefix\|>, <\|fim_suffix\|>, <\|fim_middle\|>, which are not tokens of the tokenizer .*; take the task"
    )
    with pytest.raises(SourceError, match=said) as caught:
        ask_for_answers(world, tasks, **settings(mirrors))
    assert "\n" not in str(caught.value)
    tokenizer = build_tokenizer(["a"], tmp_path)
    marks = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    tokenizer.add_special_tokens({"additional_special_tokens": marks[:2]})
    assert lacking_tokens(wrapped(tokenizer), marks) == marks[2:]


def test_names_tell_which_tasks_run_programs() -> None:
    """As olmo-eval's own scorers do, of all tasks that are taken from it, with any one variant."""
    found: dict[str, bool] = by_olmo_eval(
        "import contextlib\n"
        "from evaluation.providers.adapters.contract import RefusedTask\n"
        "from evaluation.providers.adapters.olmo_eval_tasks import task_names, find_tasks\n"
        "import olmo_eval.evals.tasks\n"
        "from olmo_eval.common.scorers.execution import ExecutionScorer as Runs\n"
        "found = {}",
        "for name in task_names():\n"
        "    with contextlib.suppress(RefusedTask):\n"
        "        tasks = find_tasks(name).values()\n"
        "        scorers = [one for task in tasks for one in task._get_scorers().values()]\n"
        "        found[name] = any(isinstance(one, Runs) for one in scorers)\n"
        "print(json.dumps(found))",
    )
    assert {*INSTANCES, "olmobase:code_fim"} <= {name for name, runs in found.items() if runs}
    for name, runs in found.items():
        if "bpb" not in name.split(":"):
            named = ProviderTask(provider="olmo_eval", task=name).runs_programs
            assert named == runs, name
