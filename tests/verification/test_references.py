"""Verdicts against those of two harnesses, made by `make_references.py` in environments of theirs.

Every completion of every row is compared where EVAL_ALL_REFERENCES is set, else every sixteenth row.
"""

import gzip
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluation.settings.verifiers import Boxed, IFBench, IFEval, MathVerify, Minerva, Verifier
from evaluation.verification import nltk_data
from evaluation.verification.pool import VerifierJob, verify_all
from tests.verification.make_references import DIGITS, LEVELS, cases
from tests.verification.test_verifiers import FLEXIBLE, STRICT

HERE = Path(__file__).parent
EVERY = 1 if "EVAL_ALL_REFERENCES" in os.environ else 16

MATH = MathVerify(kind="math_verify")
OF_LEVELS = {level: dict(zip(("level", "mode"), level.split("_"), strict=True)) for level in LEVELS}
VERIFIERS: Mapping[str, Mapping[str, Verifier]] = {
    "gsm8k": {"strict-match": STRICT, "flexible-extract": FLEXIBLE, "extractive_match": MATH},
    "math_500": {
        "exact_match": Minerva(kind="minerva"),
        "boxed": Boxed(kind="boxed"),
        "math_verify": MATH,
        "extractive_match": MATH,
    },
    "ifeval": {
        name: IFEval.model_validate({"kind": "ifeval", **keys}) for name, keys in OF_LEVELS.items()
    },
    "ifbench": {
        name: IFBench.model_validate({"kind": "ifbench", **keys})
        for name, keys in OF_LEVELS.items()
    },
}
"""Ours, by the task and the metric of theirs."""

KNOWN = {
    # It reads `\\text{east}+ 0` as `\\text{east}`, `x=5,5` as `x=5`, and not `x = 10` as 10, where
    # math-verify's newer parser does otherwise.
    ("lighteval", "math_500", "extractive_match"): {"doubled", "two boxes", "final with equation"}
}
"""Completions on which we differ, by the judge, the task and the metric of theirs."""


def records(judge: str) -> Iterator[dict[str, str]]:
    with gzip.open(HERE / f"references_{judge}.jsonl.gz", "rt") as lines:
        yield from map(json.loads, lines)


def document(task: str, row: dict[str, Any]) -> dict[str, Any]:
    if task == "gsm8k":
        return {"gold": row["answer"].split("#### ")[1]}
    if task == "math_500":
        return {"gold": row["solution"]}
    arguments = {"instruction_ids": row["instruction_id_list"], "arguments": row["kwargs"]}
    return {"prompt": row["prompt"], **arguments}


def can_be_judged(row: dict[str, Any], missing: set[str]) -> bool:
    """False for instructions whose data of NLTK is not on this machine."""
    needed = (nltk_data.NEEDED_BY.get(name, ()) for name in row.get("instruction_id_list", []))
    return missing.isdisjoint(resource for resources in needed for resource in resources)


def is_misread(judge: str, task: str, row: dict[str, Any]) -> bool:
    """Of two solutions of GSM8K, lighteval takes a number from the middle for the gold answer."""
    golds = ("33.333...%", "$<<4+2=6.00>>6.00")
    return (judge, task) == ("lighteval", "gsm8k") and any(gold in row["answer"] for gold in golds)


@pytest.mark.parametrize("task", VERIFIERS)
def test_same_verdicts(task: str, shared: Path, nltk_folder: Path) -> None:
    theirs = {
        (judge, record["metric"]): record["verdicts"]
        for judge in ("lm_eval", "lighteval")
        for record in records(judge)
        if record["task"] == task
    }
    missing = set(nltk_data.missing(nltk_folder, nltk_data.RESOURCES))
    chosen = [
        (place, row, name, completion)
        for place, (number, row, name, completion) in enumerate(cases(shared, task))
        if number % EVERY == 0 and can_be_judged(row, missing)
    ]
    assert len(chosen) > 100
    jobs: list[VerifierJob] = [
        (VERIFIERS[task][metric], document(task, row), completion)
        for _, metric in theirs
        for _, row, _, completion in chosen
    ]
    found = dict(verify_all(jobs, workers=2, seconds=60, nltk_data=nltk_folder))
    compared = itertools.product(theirs.items(), chosen)
    for number, (((judge, metric), line), (place, row, name, completion)) in enumerate(compared):
        if name in KNOWN.get((judge, task, metric), ()) or is_misread(judge, task, row):
            continue
        verdict = found[number]
        assert verdict.credit is not None, (metric, completion, verdict)
        mine = DIGITS[round(verdict.credit * verdict.weight)]
        assert mine == line[place], (judge, metric, name, row, completion, verdict)
