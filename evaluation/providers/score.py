"""Verify many completions by a provider's metrics: one process for all, one verdict for each.

The provider's program handles the cases in order and writes each verdict at once. Where it dies, or a
case takes too long, that case gets a verdict without credit, and another process continues with the
next case.
"""

import math
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.processes import ProgramEnd
from evaluation.providers.adapters.contract import START_SECONDS
from evaluation.providers.program import Provider
from evaluation.verification.verdicts import Verdict, shortened

MOST_STARTS = 20
"""Most processes for a batch; after these, the remaining cases have no verdict."""

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

    scores: dict[str, Any] | None
    reason: str = ""


def score(
    provider: Provider, request: Mapping[str, Any], cases: Sequence[Case], limits: CaseLimits
) -> list[CaseOutcome]:
    """Verify completions by the provider's own metrics; return an outcome for each, in order.

    Args:
        request: The request without the cases and their limits.
        cases: Documents, each with a completion.
    """
    outcomes: list[CaseOutcome] = []
    for _ in range(MOST_STARTS):
        if rest := cases[len(outcomes) :]:
            outcomes += _once(provider, request, rest, limits)
    unverified = CaseOutcome(None, f"the provider's program died {MOST_STARTS} times before")
    return outcomes + [unverified] * (len(cases) - len(outcomes))


def _once(
    provider: Provider, request: Mapping[str, Any], cases: Sequence[Case], limits: CaseLimits
) -> list[CaseOutcome]:
    """Return the outcomes of the cases until the program ended, with that of the case that ended it."""
    asked = {**request, **vars(limits), "cases": cases}
    longest = START_SECONDS + limits.seconds * (len(cases) + 1)
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    lines, ended = provider.ask(f"verifying {request['task']}", asked, longest, **offline)
    outcomes = [
        CaseOutcome(line.get("scores"), f"the provider's metric failed: {line.get('error')}")
        for line in lines[1 : len(cases) + 1]
    ]
    blamed = [CaseOutcome(None, _blame(ended, limits))] if len(outcomes) < len(cases) else []
    return outcomes + blamed


def _blame(ended: ProgramEnd, limits: CaseLimits) -> str:
    if ended.code in (None, -signal.SIGALRM):
        return f"the provider was not done after {limits.seconds:g} seconds"
    return f"the provider's program {ended}" if ended.code else "the provider gave no verdict"


def verdict_of(metric: str, outcome: CaseOutcome, completion: str) -> Verdict:
    """Return the verdict of one metric; a list, with a score per instruction, weighs its length."""
    if outcome.scores is None:
        return Verdict(credit=None, reason=outcome.reason)
    value = outcome.scores.get(metric)
    parts: list[Any] = value if isinstance(value, list) else [value]
    if not parts or not all(isinstance(part, int | float) and 0 <= part <= 1 for part in parts):
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
