"""Tier4: checks verify what follows a model's thinking in each answer to a probe.

A rate is a share of prompts, not of checks, so that two checkpoints can be paired prompt by prompt. A prompt
counts for a rate if it has a check of one of the rate's kinds (`settings.measured`), and passes if all of its
checks of those kinds do. `truncated_rate` counts answers that reached their token limit. Prompts that can
only be judged by their meaning (`headline: false`) count for their category alone. A rate for which no prompt
counts is null.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from evaluation.grading.verdicts import AnswerJob
from evaluation.metrics.layout import Layout
from evaluation.metrics.variance import Floats
from evaluation.results.units import ByItem, Units, units_of
from evaluation.scoring.stored_completions import StoredCompletion, counted_completions, sample_key
from evaluation.settings.measured import OF_PROBES, TRUNCATED
from evaluation.settings.plan import StagePlan
from evaluation.settings.suites import Probe
from evaluation.settings.tiers import TIERS, Tier
from evaluation.store import ScoreStore
from evaluation.verification.checks.registry import named
from evaluation.verification.thinking import checked_part
from evaluation.verification.verdicts import Verdict, unless_unfinished


@dataclass(frozen=True)
class AnsweredProbe:
    """A probe, its prompt as the model read it, the answer, and the template of its conversation."""

    probe: Probe
    prompt: str
    answer: StoredCompletion
    template: str | None

    @property
    def part(self) -> str | None:
        """The part of the answer that checks read; None where the thinking is unfinished."""
        after = self.probe.answer_after
        return checked_part(self.answer.text, self.prompt, after, self.template)


Answered = Mapping[str, AnsweredProbe]

PromptRow = dict[str, Any]
"""A prompt, its answer, and the results of the checks."""


def answered_probes(
    plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]
) -> tuple[Answered, list[Mapping[str, Any]]]:
    """Return a stage's probes in the order of the suite, and the summaries of their scores.

    Raises:
        ScoringError: An answer is not stored.
    """
    found: dict[str, AnsweredProbe] = {}
    summaries: dict[str, Mapping[str, Any]] = {}
    for chat in entry["chats"]:
        keys = {name: sample_key(entry["prompts"][name], 0) for name in chat["probes"]}
        stored, used = counted_completions(
            plan, store, "probes", chat["answers"], [*keys.values()], chat["stop"]
        )
        summaries |= used
        for name, key in keys.items():
            probe, prompt = plan.suite.probes[name], entry["texts"][name]
            found[name] = AnsweredProbe(probe, prompt, stored[key], chat["chat_template"])
    return {name: found[name] for name in plan.suite.probes}, [*summaries.values()]


def probe_jobs(answered: Answered) -> dict[str, AnswerJob]:
    """Return the checks of all answers, by the place that errors name."""
    return {
        f"{check_name} of {name}": (check, {}, part)
        for name, answer in answered.items()
        for part in [answer.part or ""]
        for check_name, check in named(answer.probe.checks)
    }


def probe_rows(answered: Answered, verdicts: Iterable[Verdict]) -> list[PromptRow]:
    """Return answers with the results of the checks in `probe_jobs`'s order."""
    following, rows = iter(verdicts), []
    for name, entry in answered.items():
        checks: dict[str, dict[str, Any]] = {}
        counted = [*named(entry.probe.checks)]
        for (check_name, check), found in zip(
            counted, islice(following, len(counted)), strict=True
        ):
            verdict = unless_unfinished(found, entry.part is None)
            note = {"note": verdict.note} if verdict.note else {}
            checks[check_name] = {"kind": check.kind, "passed": verdict.credit == 1, **note}
        rows.append(
            {
                "id": name,
                "category": entry.probe.category,
                "headline": entry.probe.headline,
                "prompt": entry.prompt,
                "response": entry.answer.text,
                "stop_reason": entry.answer.stop_reason,
                "prompt_tokens": entry.answer.prompt_tokens,
                "response_tokens": entry.answer.tokens,
                "checks": checks,
            }
        )
    return rows


def outcome(row: PromptRow, rate: str) -> float:
    """Return 1 if a prompt passed or was truncated, 0 if not, NaN if it does not count for the rate."""
    if rate == TRUNCATED.name:
        return float(row["stop_reason"] == "length")
    kinds = TIERS["tier4"].metric(rate).of_checks
    relevant = [check["passed"] for check in row["checks"].values() if check["kind"] in kinds]
    return float(all(relevant)) if relevant else np.nan


def probe_units(tier: Tier, rows: Sequence[PromptRow]) -> ByItem:
    """Return the prompts of each category with the headline, and under None all with all rates."""
    members: dict[str | None, list[PromptRow]] = {None: [row for row in rows if row["headline"]]}
    for row in rows:
        members.setdefault(row["category"], []).append(row)
    rates = [metric.name for metric in OF_PROBES]
    return {
        name: _rated(tier, counted, rates if name is None else [tier.headline])
        for name, counted in members.items()
    }


def _rated(tier: Tier, rows: Sequence[PromptRow], rates: Sequence[str]) -> Units:
    columns: dict[str, Floats] = {
        rate: np.array([outcome(row, rate) for row in rows], np.float64) for rate in rates
    }
    return units_of(tier, [row["id"] for row in rows], Layout(len(rows)), columns)


def summarize(rows: Sequence[PromptRow]) -> dict[str, Any]:
    """Return `summary`, `by_category` and `prompts` of `tier4_sft_native.json`."""
    tier, rates = TIERS["tier4"], [metric.name for metric in OF_PROBES]
    categories = dict.fromkeys(row["category"] for row in rows)
    of_category = {name: [row for row in rows if row["category"] == name] for name in categories}
    hidden = ("prompt", "response")
    return {
        "summary": _shares(tier, [row for row in rows if row["headline"]], rates),
        "by_category": {
            name: {"prompts": len(counted), **_shares(tier, counted, rates)}
            for name, counted in of_category.items()
        },
        "prompts": [
            {
                **{key: value for key, value in row.items() if key not in hidden},
                "passed": outcome(row, tier.headline) == 1,
            }
            for row in rows
        ],
    }


def _shares(tier: Tier, rows: Sequence[PromptRow], rates: Sequence[str]) -> dict[str, float | None]:
    """Return all rates over some prompts; None where no prompt counts."""
    measured = _rated(tier, rows, rates).measured
    return {rate: measured[rate].value if rate in measured else None for rate in rates}
