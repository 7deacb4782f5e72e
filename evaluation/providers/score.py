"""Verdicts of a provider on many completions: one process for all of them, one verdict for each.

The program works through the cases in their order and writes each verdict as it has it. Where it
dies, or is silent for longer than a case may take, the case that it was at gets a verdict without
credit, and another process goes on behind it.
"""

import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.errors import ScoringError
from evaluation.files import write_jsonl
from evaluation.interpreters import ProgramEnd, refusal
from evaluation.providers.program import Provider, run
from evaluation.verification.verdicts import Verdict, shortened

START_SECONDS = 600.0
"""Time for the program to import what it needs."""

MOST_STARTS = 20
"""Processes for a batch; after so many the cases that are left have no verdict."""

Scores = dict[str, Any]
Case = tuple[Mapping[str, Any], str]
"""A document as the provider rendered it, and a completion of its prompt."""


@dataclass(frozen=True)
class Limits:
    """What a single case may take."""

    seconds: float
    memory_mb: int


@dataclass(frozen=True)
class Program:
    """A program that decides a case; `failed` are the scores if it does not pass its tests."""

    text: str
    tests: str
    seconds: float
    failed: Scores


@dataclass(frozen=True)
class Outcome:
    """Scores of a case by metric, or why there are none.

    They hold only if `program` passes, where there is one (`programs.run_programs`). `reason` and
    `note` are a verdict's.
    """

    scores: Scores | None
    reason: str = ""
    note: str = ""
    program: Program | None = None


def score(
    provider: Provider, request: Mapping[str, Any], cases: Sequence[Case], limits: Limits
) -> Iterator[tuple[int, Outcome]]:
    """Judge completions by the provider's own metrics.

    Args:
        provider: The provider that has the task.
        request: What request.json holds, but for the memory.
        cases: Documents, each with a completion.
        limits: What a single case may take.

    Yields:
        Number of the case and its outcome, in order.

    Raises:
        ScoringError: The program cannot be started, or refuses the task.
    """
    done = 0
    for _ in range(MOST_STARTS):
        if done == len(cases):
            return
        batch = cases[done:]
        found, ended = _once(provider, request, batch, limits)
        for outcome in found:
            yield done, outcome
            done += 1
        if len(found) < len(batch):
            yield done, Outcome(None, _blame(ended, limits))
            done += 1
    for number in range(done, len(cases)):
        yield number, Outcome(None, f"the provider's program died {MOST_STARTS} times before")


def _once(
    provider: Provider, request: Mapping[str, Any], cases: Sequence[Case], limits: Limits
) -> tuple[list[Outcome], ProgramEnd]:
    """Return the outcomes up to where the program ended, one a case, and how it ended."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            {"number": n, "document": d, "completion": text} for n, (d, text) in enumerate(cases)
        ]
        write_jsonl(folder / "cases.jsonl", rows)
        keep_on = _still_writes(folder / "scores.jsonl", limits)
        ended = run(provider, "score", folder, {**request, "memory_mb": limits.memory_mb}, keep_on)
        if (refused := refusal(folder)) is not None:
            raise ScoringError(f"{provider.title} does not judge the task: {refused}")
        lines = _lines(folder / "scores.jsonl")
    _check_ready(provider, lines[:1], ended)
    found: list[Outcome] = []
    for line in lines[1 : len(cases) + 1]:
        if line.get("number") != len(found):
            break
        found.append(_outcome(line))
    return found, ended


def _check_ready(provider: Provider, first: list[dict[str, Any]], ended: ProgramEnd) -> None:
    if not first or first[0].get("ready") is not True:
        raise ScoringError(
            f"{provider.title} cannot judge answers: its program {ended}; run `{provider.install}` again"
        )
    if (sentence := provider.other_version(first[0].get("version"))) is not None:
        raise ScoringError(sentence)


def _still_writes(path: Path, limits: Limits) -> Callable[[], bool]:
    """Watch whether the program still writes: a case may take its seconds, the first the start too."""
    size, since = 0, time.monotonic()

    def keep_on() -> bool:
        nonlocal size, since
        now, known = time.monotonic(), size
        size = path.stat().st_size if path.exists() else 0
        if size != known:
            since = now
        return now - since < (limits.seconds if size else START_SECONDS)

    return keep_on


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines that are JSON objects, up to the first that is none."""
    found: list[dict[str, Any]] = []
    content = path.read_bytes() if path.exists() else b""
    for line in content.split(b"\n")[:-1]:
        try:
            read = json.loads(line)
        except ValueError:
            break
        if not isinstance(read, dict):
            break
        found.append(read)
    return found


def _outcome(line: Mapping[str, Any]) -> Outcome:
    scores = line.get("scores")
    if isinstance(scores, dict):
        asked = (line.get(name) for name in ("program", "tests", "seconds", "failed"))
        program = Program(*asked) if "program" in line else None  # type: ignore[arg-type]
        return Outcome(scores, program=program)
    return Outcome(None, f"the provider's metric failed: {line.get('error', 'it gave no reason')}")


def _blame(ended: ProgramEnd, limits: Limits) -> str:
    if ended.code is None:
        return f"the provider was not done after {limits.seconds:g} seconds"
    if ended.code == 77:
        return f"the provider took more than {limits.memory_mb} MB of memory"
    return f"the provider's program {ended}" if ended.code else "the provider gave no verdict"


def verdict_of(metric: str, outcome: Outcome, completion: str) -> Verdict:
    """Return the verdict of one metric.

    Args:
        metric: Name of the metric there.
        outcome: All scores of the completion.
        completion: Text that was judged.

    Returns:
        The verdict; a list of scores, one an instruction, counts by its length.
    """
    if outcome.program is not None:
        return Verdict(credit=None, reason="its program was not run")
    if outcome.scores is None:
        return Verdict(credit=None, reason=outcome.reason)
    if metric not in outcome.scores:
        there = ", ".join(outcome.scores) or "none"
        return Verdict(credit=None, reason=f"the provider gave no {metric}; it gave {there}")
    value = outcome.scores[metric]
    parts = value if isinstance(value, list) else [value]
    if not parts or not all(_is_credit(part) for part in parts):
        shown = shortened(str(value), 60)
        return Verdict(credit=None, reason=f"{metric} is {shown}, which is no credit from 0 to 1")
    credit = math.fsum(parts) / len(parts)
    return Verdict(
        credit=credit,
        answer=shortened(completion) or None,
        reason="" if credit == 1 else outcome.reason or f"{metric} is {value}",
        weight=float(len(parts)),
        note=outcome.note,
    )


def _is_credit(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1
