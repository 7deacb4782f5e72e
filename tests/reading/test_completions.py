"""Completions in forms that models use, right and wrong by what a person says, against their verdicts.

A line of the file: id, kind, completion, whether it is right as a careful grader judges, why it is
there, and what its kind needs. Language models wrote them, most without knowledge of the code. What
gold and completion alone do not decide is left out: whether a polynomial had to be factored, in which
unit the question asks, `three` for 3.
"""

import ast
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from evaluation.reading.numbers import read_numbers, readable
from evaluation.settings.checks import Check
from evaluation.settings.verifiers import Mathematics, NumberVerifier, Program, Verifier
from evaluation.verification.registry import verify
from evaluation.verification.thinking import checked_part, read_answer
from tests.tables import cases
from tests.verification.sandbox.references import needs_sandbox

FILE = Path(__file__).parent / "completions.jsonl.gz"
CHECK: TypeAdapter[Check] = TypeAdapter(Check)
PROGRAM = Program(kind="program", seconds=5.0, memory_mb=512)


def lines() -> Iterator[dict[str, Any]]:
    yield from map(json.loads, gzip.decompress(FILE.read_bytes()).decode().splitlines())


def verifier_of(gold: str) -> Verifier:
    is_number = len(read_numbers(readable(gold))) == 1 and not set(gold) & set("\\_^{(,")
    return NumberVerifier(kind="number") if is_number else Mathematics(kind="mathematics")


def document_of(line: dict[str, Any]) -> dict[str, Any]:
    """The document of a program: with a `check` and a prefix if the prompt is code, as HumanEval's is."""
    try:
        ast.parse(line["prompt"].rstrip() + "\n    pass\n")
    except SyntaxError:
        return {"tests": line["tests"]}
    name = line["entry_point"]
    tests = "".join(
        f"    {test}\n" for test in line["tests"].replace(f"{name}(", "candidate(").splitlines()
    )
    return {
        "tests": f"def check(candidate):\n{tests}",
        "prefix": line["prompt"],
        "entry_point": name,
    }


def passes(line: dict[str, Any]) -> bool:
    kind, text = line["kind"], line["completion"]
    if kind == "probe":
        part = checked_part(text, None, is_required=False) or ""
        checks = [CHECK.validate_python({"check": c.pop("kind"), **c}) for c in line["checks"]]
        return all(verify(check, {}, part).credit == 1 for check in checks)
    if kind == "program":
        return verify(PROGRAM, document_of(line), text).credit == 1
    if kind == "thinking":
        answer = read_answer(text, line["answer_after"])
        if answer is None:
            return False
        text = answer
    verifier = Mathematics(kind="mathematics") if kind == "math" else verifier_of(line["gold"])
    return verify(verifier, {"gold": line["gold"]}, text).credit == 1


@cache
def misjudged() -> tuple[Counter[bool], dict[bool, list[tuple[str, str]]]]:
    """How many completions are right and wrong, and those of each that got the other verdict."""
    counts: Counter[bool] = Counter()
    others: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for line in lines():
        counts[line["right"]] += 1
        if passes(line) != line["right"]:
            others[line["right"]].append((line["id"], line["why"]))
    return counts, others


@needs_sandbox
@pytest.mark.parametrize(("is_right", "least", "most"), [(True, 1200, 0.02), (False, 600, 0.05)])
def test_few_completions_are_misjudged(is_right: bool, least: int, most: float) -> None:
    counts, others = misjudged()
    assert counts[is_right] >= least
    assert len(others[is_right]) <= most * counts[is_right], others[is_right]


@pytest.mark.parametrize(("gold", "completion", "is_right"), cases("reading/statements", "numbers"))
def test_the_number_that_a_statement_gives(gold: str, completion: str, is_right: bool) -> None:
    verdict = verify(NumberVerifier(kind="number"), {"gold": gold}, completion)
    assert verdict.credit == is_right


@pytest.mark.parametrize(
    ("gold", "completion", "is_right"), cases("reading/statements", "formulas")
)
def test_the_formula_that_a_statement_gives(gold: str, completion: str, is_right: bool) -> None:
    verdict = verify(Mathematics(kind="mathematics"), {"gold": gold}, completion)
    assert verdict.credit == is_right
