"""Objectives, verdicts and the recommendation as pages show them, and the curves of their groups."""

from collections.abc import Mapping
from typing import Any

from evaluation.bridge.delta import OVERALL, group_item, metric_of
from evaluation.reporting.headlines import in_words
from evaluation.reporting.pages.curves import Series, spread_of
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.results.deltas_file import AimRow
from evaluation.results.stage_files import Recommendation
from evaluation.settings.candidates import Candidate, candidate_label, candidate_rank
from evaluation.settings.tiers import TIERS, TierName


def verdict_rows(found: StageResults, chosen: Candidate | None) -> list[dict[str, Any]]:
    """Return the verdict on each aim of each step and merge, the chosen one first."""
    order = sorted(found.deltas, key=lambda one: (one != chosen, candidate_rank(one)))
    return [
        {"step": one, "verdict": content.verdict, "aims": list(map(_aim, content.aims))}
        for one, content in ((one, found.deltas[one]) for one in order)
    ]


def _aim(aim: AimRow) -> dict[str, Any]:
    metric = metric_of(aim.tier, aim.metric)
    change = metric.change(aim.delta, aim.low, aim.high)
    beyond = " by more than the margin" if aim.want == "keep" else ""
    more = []
    if aim.verdict == "undecided" and aim.mde is not None:
        more.append(f"could only detect changes of {metric.change(aim.mde, sign='')} or more")
    if aim.companion:
        more.append(aim.companion.sentence)
    worse = f"significantly worse{beyond}: {', '.join(aim.regressions)}" if aim.regressions else ""
    return {
        "verdict": aim.verdict,
        "change": f"Δ {change}" if aim.low is not None else f"Δ {change}; {aim.why}",
        "more": more,
        "worse": worse,
    }


def group_series(found: StageResults) -> list[Series]:
    """Return a curve of each group of items that an aim is about, from the numbers of its verdicts.

    Of rates a group is an item by itself.
    """
    curves: dict[tuple[str, str, str], dict[int, AimRow]] = {}
    merges: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for step in sorted(found.deltas, key=candidate_rank):
        for aim in found.deltas[step].aims:
            named = found.plan.suite.tier_groups(aim.tier)  # these have curves like any item
            if aim.group and aim.group not in named and not TIERS[aim.tier].rates:
                key = aim.tier, aim.group, aim.metric.removeprefix("delta_")
                if isinstance(step, int):
                    curves.setdefault(key, {})[step] = aim
                else:
                    mark = {"name": step, "value": aim.value, "low": None, "high": None}
                    merges.setdefault(key, []).append(mark)
    return [
        {**_series(key, list(rows.items())), "merges": merges.get(key, [])}
        for key, rows in curves.items()
    ]


def _series(key: tuple[str, str, str], rows: list[tuple[int, AimRow]]) -> Series:
    tier, group, metric = key
    last = rows[-1][1]
    points = [
        {
            "x": step,
            "step": step,
            "value": aim.value,
            "low": None,
            "high": None,
            "paired_low": None if aim.low is None else aim.bridge_value + aim.low,
            "paired_high": None if aim.high is None else aim.bridge_value + aim.high,
        }
        for step, aim in rows
    ]
    return {
        "tier": tier,
        "item": group_item(group),
        "group": group,
        "metric": metric,
        "chance": None,
        "points": points,
        "bridge": {"value": last.bridge_value, "low": None, "high": None},
        "spread": spread_of(points),
        "note": f"Mean of {', '.join(last.items)}.",
    }


def chosen_step(found: StageResults) -> Candidate | None:
    """Return the recommended step or merge, or the last step."""
    recommended = found.recommendation.candidate if found.recommendation else None
    if recommended in found.candidates:
        return recommended
    return max(found.steps, default=None)


def stage_verdict(found: StageResults) -> str | None:
    """Return the verdict on the recommended step."""
    return found.recommendation.verdict if found.recommendation else None


def advice(found: StageResults) -> dict[str, Any] | None:
    """Return the recommendation as pages show it; None if there is none."""
    content = found.recommendation
    if content is None or content.candidate is None:
        return None
    kind = (content.kind or "least bad").capitalize()
    return {
        **content.model_dump(),
        "kind": kind,
        "named": candidate_label(content.candidate),
        "beside": _beside(content),
        "beside_steps": in_words([entry.candidate for entry in content.beside]),
        "others": [{**one.model_dump(), "step": one.candidate} for one in content.others],
    }


def _beside(content: Recommendation) -> list[str]:
    """Return the steps that do not differ significantly from the recommended one, with changes."""
    known = content.headline and TIERS[content.headline.tier].metric(content.headline.metric)
    named = []
    for one in content.beside:
        has_change = known is not None and one.low is not None
        change = known.change(one.delta, one.low, one.high) if known and has_change else ""
        named.append(f"{candidate_label(one.candidate)}{f' ({change})' if change else ''}")
    return named


def aim_title(aim: Mapping[str, Any]) -> str:
    """Return an aim in words, e.g. `tier2 (hq): improve by more than 0.02 nats per token`."""
    tier = TIERS[aim["tier"]]
    metric = f" {aim['metric']}" if aim["metric"] else ""
    group = f" ({aim['group']})" if aim["group"] else ""
    size = tier.metric(aim["metric"] or tier.headline).size(aim["margin"])
    margin = f"by more than {size}" if aim["want"] == "improve" else f"within {size}"
    return f"{aim['tier']}{metric}{group}: {aim['want']} {margin}"


def headline_item(tier: TierName, group: str | None) -> str:
    """Return the item whose curve is the headline's."""
    if group is None:
        return OVERALL
    return group if TIERS[tier].rates else group_item(group)
