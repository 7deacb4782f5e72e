"""A release of LiveCodeBench, from rows in its schema to verdicts: scripts and methods, with large tests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.grading.by_hand import verify_file
from evaluation.grading.generated import sample_rows
from evaluation.prefill.caches import read_documents, read_prompts
from evaluation.prefill.generation import prefill_generation_task
from evaluation.settings.suites import load_suite
from tests.conftest import ROOT
from tests.prefill.plans import make_plan
from tests.shipped.mirrors import pack
from tests.workflow.world import write_rows

PROBLEMS = 6
STARTER = "class Solution:\n    def scaled(self, numbers: List[int], factor: int) -> int:\n        "
METHOD = "class Solution:\n    def scaled(self, numbers, factor):\n        return "
SCRIPT = "import sys\nnumbers = list(map(int, sys.stdin.readline().split()))\nfactor = int(input())\nprint("
RIGHT, FIRST_ONLY, WRONG = "sum(numbers) * factor", "6 * factor", "sum(numbers)"


def problems() -> Iterator[dict[str, Any]]:
    """Half of them scripts (AtCoder), half methods (LeetCode), as the hub's rows have them."""
    for number in range(PROBLEMS):
        is_script, factor = number % 2 == 0, number + 2
        lists = [[1, 2, 3], *([n, -n, n * number] for n in range(20)), list(range(50_000))]
        tests = [_test(is_script, numbers, factor) for numbers in lists]
        yield {
            "question_title": f"Scaled {number}",
            "question_content": f"Return the sum of all numbers, times {factor}.",
            "platform": "atcoder" if is_script else "leetcode",
            "question_id": f"abc{number}_a" if is_script else str(4000 + number),
            "contest_id": "one",
            "contest_date": "2025-01-04T00:00:00",
            "starter_code": "" if is_script else STARTER,
            "difficulty": ("easy", "medium", "hard")[number % 3],
            "public_test_cases": json.dumps(tests[:1]),
            "private_test_cases": pack(json.dumps(tests[1:])),
            "metadata": "{}" if is_script else json.dumps({"func_name": "scaled"}),
        }


def _test(is_script: bool, numbers: list[int], factor: int) -> dict[str, str]:
    expected = str(sum(numbers) * factor)
    if is_script:
        written = f"{' '.join(map(str, numbers))}\n{factor}\n"
        return {"input": written, "output": expected + "\n", "testtype": "stdin"}
    return {"input": f"{numbers}\n{factor}", "output": expected, "testtype": "functional"}


def completion(is_script: bool, formula: str) -> str:
    program = f"{SCRIPT}{formula})" if is_script else f"{METHOD}{formula}"
    return f"The sum is multiplied.\n```python\n{program}\n```\nThat is all."


def test_a_release(tmp_path: Path, smollm2: Path) -> None:
    rows = list(problems())
    write_rows(tmp_path / "mirror/v6/test.jsonl", rows)
    suite = load_suite(ROOT / "task_suites", "benchmarks_chat")
    task = suite.generation_tasks["livecodebench_v6"].model_dump(exclude_unset=True)
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    plan = make_plan(
        tmp_path / "cache",
        smollm2,
        mirrors={"lighteval/code_generation_lite": str(tmp_path / "mirror")},
        sequence_length=8192,
        generation_tasks={"lcb": task | {"chat_template": template, "stop": ["</s>"]}},
    )
    prefill_generation_task(plan, "lcb")
    folder = plan.cache_folder("tier5", "lcb")
    prompts, documents = read_prompts(folder).prompts, read_documents(folder)
    assert [prompt.id for prompt in prompts] == [row["question_id"] for row in rows]
    for prompt, row in zip(prompts, rows, strict=True):
        assert row["question_content"] in prompt.prompt
        assert ("from stdin" in prompt.prompt) == (not row["starter_code"])
        assert row["starter_code"] in prompt.prompt
        assert documents[prompt.id].strata["platform"] == row["platform"]

    given = [
        {
            "id": row["question_id"],
            "sample": sample,
            "completion": completion(not row["starter_code"], formula),
        }
        for row in rows
        for sample, formula in enumerate((RIGHT, FIRST_ONLY, WRONG))
    ]
    write_rows(tmp_path / "completions.jsonl", given)
    found, summary = verify_file(plan, "lcb", tmp_path / "completions.jsonl")
    lines = [*sample_rows(found)]
    credits = {(line["id"], line["sample"]): line["verdicts"]["tests"]["credit"] for line in lines}
    assert credits == {(one["id"], one["sample"]): float(one["sample"] == 0) for one in given}
    assert summary["verifiers"]["tests"]["pass_at_k"]["3"]["value"] == 1.0
    assert {name: one["prompts"] for name, one in summary["strata"]["platform"].items()} == {
        "atcoder": 3,
        "leetcode": 3,
    }
