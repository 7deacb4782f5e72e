"""Verdicts are those of lm-evaluation-harness 0.4.13 and lighteval 0.13.0, from environments of theirs.

A line of `references.jsonl.gz` is a document, and completions with the verdicts by metric: right (1) or
wrong (0), of several instructions the number followed in base 36. The completions are golds in several
formats, near misses, hostile texts, and 200 tokens each of SmolLM2-135M-Instruct. Where a metric of
theirs misreads (docs/upstream_faults.md), it is left out.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluation.settings.verifiers import Boxed, IFBench, IFEval, MathVerify, Minerva, Verifier
from evaluation.verification import nltk_data
from evaluation.verification.pool import VerifierJob, verify_all
from tests.verification.test_verifiers import FLEXIBLE, STRICT

MATH = MathVerify(kind="math_verify")
LEVELS = ("prompt_strict", "instruction_strict", "prompt_loose", "instruction_loose")
KEYS = {level: dict(zip(("level", "mode"), level.split("_"), strict=True)) for level in LEVELS}
VERIFIERS: Mapping[str, Mapping[str, Verifier]] = {
    "gsm8k": {"strict-match": STRICT, "flexible-extract": FLEXIBLE, "extractive_match": MATH},
    "math_500": {
        "exact_match": Minerva(kind="minerva"),
        "boxed": Boxed(kind="boxed"),
        "math_verify": MATH,
        "extractive_match": MATH,
    },
    "ifeval": {n: IFEval.model_validate({"kind": "ifeval", **KEYS[n]}) for n in LEVELS},
    "ifbench": {n: IFBench.model_validate({"kind": "ifbench", **KEYS[n]}) for n in LEVELS},
}
"""Ours, by the task and the metric of theirs."""


def read_documents() -> dict[str, list[dict[str, Any]]]:
    documents = defaultdict(list)
    packed = Path(__file__).with_name("references.jsonl.gz").read_bytes()
    for line in gzip.decompress(packed).splitlines():
        row = json.loads(line)
        documents[row["task"]].append(row)
    return documents


def can_be_judged(document: dict[str, Any], missing: set[str]) -> bool:
    """False for instructions whose data of NLTK is not on this machine."""
    needed = [nltk_data.NEEDED_BY.get(name, ()) for name in document.get("instruction_ids", [])]
    return missing.isdisjoint(resource for resources in needed for resource in resources)


@pytest.mark.parametrize("task", VERIFIERS)
def test_same_verdicts(task: str, nltk_folder: Path) -> None:
    missing = set(nltk_data.missing(nltk_folder, nltk_data.RESOURCES))
    jobs: list[VerifierJob] = []
    theirs = []
    for row in read_documents()[task]:
        for completion, verdicts in row["completions"] * can_be_judged(row["document"], missing):
            for metric, verdict in verdicts.items():
                ours = VERIFIERS[task][metric.removeprefix("lighteval ")]
                jobs.append((ours, row["document"], completion))
                theirs.append((metric, int(verdict, 36)))
    assert len(jobs) > 200
    for number, verdict in verify_all(jobs, workers=2, seconds=60, nltk_data=nltk_folder):
        assert verdict.credit is not None, (jobs[number], verdict)
        credit = round(verdict.credit * verdict.weight)
        assert credit == theirs[number][1], (theirs[number], jobs[number][2], verdict)
