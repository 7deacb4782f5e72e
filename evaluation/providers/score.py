"""Verify many completions by a provider's metrics: one process for all, one verdict for each.

The provider's program handles the cases in order and writes each verdict at once. Where it dies, or
is silent for longer than a case may take, the current case gets a verdict without credit, and
another process continues with the next case.
"""

import json
import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.errors import ScoringError
from evaluation.files import write_jsonl
from evaluation.interpreters import ProgramEnd, refusal
from evaluation.providers.program import Provider, run
from evaluation.verification.verdicts import Verdict, shortened

START_SECONDS = 600.0
"""Time for the program to import its libraries."""

MOST_STARTS = 20
"""Most processes for a batch; after these, the remaining cases have no verdict."""

Scores = dict[str, Any]
Case = tuple[Mapping[str, Any], str]
"""A document as the provider rendered it, and a completion of its prompt."""


@dataclass(frozen=True)
class CaseLimits:
    """Limits of a single case."""

    seconds: float
    memory_mb: int


@dataclass(frozen=True)
class CaseOutcome:
    """Scores of a case by metric, or the reason why there are none."""

    scores: Scores | None
    reason: str = ""


def score(
    provider: Provider, request: Mapping[str, Any], cases: Sequence[Case], limits: CaseLimits
) -> list[CaseOutcome]:
    """Verify completions by the provider's own metrics; return an outcome for each, in order.

    Args:
        request: Content of request.json without the memory limit.
        cases: Documents, each with a completion.

    Raises:
        ScoringError: The program cannot be started, or refuses the task.
    """
    case_outcomes: list[CaseOutcome] = []
    for _ in range(MOST_STARTS):
        if len(case_outcomes) == len(cases):
            break
        outcomes, ended = _once(provider, request, cases[len(case_outcomes) :], limits)
        case_outcomes += outcomes
        if len(case_outcomes) < len(cases):
            case_outcomes.append(CaseOutcome(None, _blame(ended, limits)))
    unverified = CaseOutcome(None, f"the provider's program died {MOST_STARTS} times before")
    return case_outcomes + [unverified] * (len(cases) - len(case_outcomes))


def _once(
    provider: Provider, request: Mapping[str, Any], cases: Sequence[Case], limits: CaseLimits
) -> tuple[list[CaseOutcome], ProgramEnd]:
    """Return the outcomes of the cases until the program ended, and how it ended."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            {"number": n, "document": d, "completion": text} for n, (d, text) in enumerate(cases)
        ]
        write_jsonl(folder / "cases.jsonl", rows)
        keep_on = _still_writes(folder / "scores.jsonl", limits)
        ended = run(provider, "score", folder, {**request, "memory_mb": limits.memory_mb}, keep_on)
        if (refused := refusal(folder)) is not None:
            raise ScoringError(f"{provider.title} does not verify the task: {refused}")
        lines = _lines(folder / "scores.jsonl")
    _check_ready(provider, lines[:1], ended)
    case_outcomes: list[CaseOutcome] = []
    for line in lines[1 : len(cases) + 1]:
        if line.get("number") != len(case_outcomes):
            break
        case_outcomes.append(_outcome(line))
    return case_outcomes, ended


def _check_ready(provider: Provider, first: list[dict[str, Any]], ended: ProgramEnd) -> None:
    if not first or first[0].get("ready") is not True:
        raise ScoringError(
            f"{provider.title} cannot verify answers: its program {ended}; run `{provider.install}` again"
        )
    if (sentence := provider.other_version(first[0].get("version"))) is not None:
        raise ScoringError(sentence)


def _still_writes(path: Path, limits: CaseLimits) -> Callable[[], bool]:
    """Return a function that tells whether the program still writes within its time limits."""
    size, since = 0, time.monotonic()

    def keep_on() -> bool:
        nonlocal size, since
        now, before = time.monotonic(), size
        size = path.stat().st_size if path.exists() else 0
        if size != before:
            since = now
        return now - since < (limits.seconds if size else START_SECONDS)

    return keep_on


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines that are JSON objects, up to the first that is not."""
    lines: list[dict[str, Any]] = []
    content = path.read_bytes() if path.exists() else b""
    for line in content.split(b"\n")[:-1]:
        try:
            read = json.loads(line)
        except ValueError:
            break
        if not isinstance(read, dict):
            break
        lines.append(read)
    return lines


def _outcome(line: Mapping[str, Any]) -> CaseOutcome:
    scores = line.get("scores")
    if isinstance(scores, dict):
        return CaseOutcome(scores)
    return CaseOutcome(
        None, f"the provider's metric failed: {line.get('error', 'it gave no reason')}"
    )


def _blame(ended: ProgramEnd, limits: CaseLimits) -> str:
    if ended.code is None:
        return f"the provider was not done after {limits.seconds:g} seconds"
    if ended.code == 77:
        return f"the provider took more than {limits.memory_mb} MB of memory"
    return f"the provider's program {ended}" if ended.code else "the provider gave no verdict"


def verdict_of(metric: str, outcome: CaseOutcome, completion: str) -> Verdict:
    """Return the verdict of one metric; a list, with a score per instruction, weighs its length."""
    if outcome.scores is None:
        return Verdict(credit=None, reason=outcome.reason)
    if metric not in outcome.scores:
        there = ", ".join(outcome.scores) or "none"
        return Verdict(credit=None, reason=f"the provider gave no {metric}; it gave {there}")
    value = outcome.scores[metric]
    parts = value if isinstance(value, list) else [value]
    if not parts or not all(_is_credit(part) for part in parts):
        shown = shortened(str(value), 60)
        return Verdict(
            credit=None, reason=f"{metric} is {shown}, which is not a credit from 0 to 1"
        )
    credit = math.fsum(parts) / len(parts)
    return Verdict(
        credit=credit,
        answer=shortened(completion) or None,
        reason="" if credit == 1 else f"{metric} is {value}",
        weight=float(len(parts)),
    )


def _is_credit(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1
