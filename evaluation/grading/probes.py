"""Tier4: checks verify what follows a model's thinking in each answer to a probe.

A rate is a share of prompts, not of checks, so that two checkpoints can be paired prompt by prompt. A prompt
counts for a rate if it has a check of one of the rate's kinds (`settings.measured`), and passes if all of its
checks of those kinds do. `truncated_rate` counts answers that reached their token limit. Prompts that can
only be judged by their meaning (`headline: false`) count for their category alone. A rate for which no prompt
counts is null.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluation.grading.verdicts import AnswerJob, check_errors, find_verdicts
from evaluation.metrics.layout import Layout
from evaluation.metrics.variance import Floats
from evaluation.results.units import ByItem, Units, units_of
from evaluation.scoring.stored_completions import StoredCompletion, counted_completions, sample_key
from evaluation.settings.checks import Check
from evaluation.settings.measured import OF_PROBES, TRUNCATED
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, Tier
from evaluation.store import ScoreStore
from evaluation.verification.checks.registry import named
from evaluation.verification.thinking import checked_part
from evaluation.verification.verdicts import Verdict, unless_unfinished

PromptRow = dict[str, Any]
"""A prompt, its answer, and the results of the checks."""


def verified_probes(
    plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]
) -> tuple[list[PromptRow], list[Mapping[str, Any]], int]:
    """Return rows in the order of the suite, summaries of their scores, and how many never ended thinking.

    Raises:
        ScoringError: An answer is not stored, or could not be verified.
    """
    tier, probes = TIERS["tier4"], plan.suite.probes
    answers, parts = dict[str, StoredCompletion](), dict[str, str | None]()
    summaries: dict[str, Mapping[str, Any]] = {}
    for chat in entry["chats"]:
        keys = {name: sample_key(entry["prompts"][name], 0) for name in chat["probes"]}
        stored, used = counted_completions(
            plan, store, "probes", chat["answers"], [*keys.values()], chat["stop"]
        )
        summaries |= used
        for name, key in keys.items():
            prompt, after = entry["texts"][name], probes[name].answer_after
            answers[name] = stored[key]
            parts[name] = checked_part(stored[key].text, prompt, after, chat["chat_template"])
    jobs: dict[tuple[str, str], AnswerJob] = {
        (name, check_name): (check, {}, parts[name] or "")
        for name, probe in probes.items()
        for check_name, check in named(probe.checks)
    }
    verdicts = find_verdicts(plan, store, tier, "probes", [*jobs.values()])
    by_check = dict(zip(jobs, verdicts, strict=True))
    # A probe without a verdict would be in no rate.
    check_errors("probes", {f"{check} of {name}": v for (name, check), v in by_check.items()}, 0.0)
    rows = [
        {
            "id": name,
            "category": probe.category,
            "headline": probe.headline,
            "prompt": entry["texts"][name],
            "response": answers[name].text,
            "stop_reason": answers[name].stop_reason,
            "prompt_tokens": answers[name].prompt_tokens,
            "response_tokens": answers[name].tokens,
            "checks": {
                check_name: _checked(check, by_check[name, check_name], parts[name])
                for check_name, check in named(probe.checks)
            },
        }
        for name, probe in probes.items()
    ]
    return rows, [*summaries.values()], sum(part is None for part in parts.values())


def _checked(check: Check, verdict: Verdict, part: str | None) -> dict[str, Any]:
    verdict = unless_unfinished(verdict, part is None)
    note = {"note": verdict.note} if verdict.note else {}
    return {"kind": check.kind, "passed": verdict.credit == 1, **note}


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
