"""Objectives, verdicts and the recommendation as pages show them, and the curves of their groups."""

from collections.abc import Mapping
from typing import Any

from evaluation.bridge.delta import OVERALL
from evaluation.reporting.headlines import change_in_words, size_in_words
from evaluation.reporting.pages.curves import Series, spread_of
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.results.deltas_file import AimRow
from evaluation.results.stage_files import Recommendation
from evaluation.settings.tiers import TIERS, TierName


def verdict_rows(found: StageResults, chosen: int | None) -> list[dict[str, Any]]:
    """Return each step's verdict on each aim, the chosen step first."""
    steps = sorted(found.deltas.values(), key=lambda one: (one.step != chosen, one.step))
    return [
        {"step": one.step, "verdict": one.verdict, "aims": list(map(_aim, one.aims))}
        for one in steps
    ]


def _aim(aim: AimRow) -> dict[str, Any]:
    metric = aim.metric.removeprefix("delta_")
    known = TIERS[aim.tier].metric(metric)
    change = change_in_words(known, aim.delta, aim.low, aim.high)
    beyond = " by more than the margin" if aim.want == "keep" else ""
    more = []
    if aim.verdict == "undecided" and aim.mde is not None:
        least = change_in_words(known, aim.mde, sign="")
        more.append(f"could only detect changes of {least} or more")
    if aim.companion:
        more.append(aim.companion.sentence)
    worse = f"significantly worse{beyond}: {', '.join(aim.regressions)}" if aim.regressions else ""
    return {
        "verdict": aim.verdict,
        "told": f"Δ {change}" if aim.low is not None else f"Δ {change}; {aim.why}",
        "more": more,
        "worse": worse,
    }


def group_name(group: str) -> str:
    """Return what a group's curve is called, which no item is."""
    return f"{group} (group)"


def group_series(found: StageResults) -> list[Series]:
    """Return a curve of each group of items that an aim is about, from the numbers of its verdicts.

    Of rates a group is an item by itself.
    """
    curves: dict[tuple[str, str, str], dict[int, AimRow]] = {}
    for step, content in sorted(found.deltas.items()):
        for aim in content.aims:
            if aim.group and not TIERS[aim.tier].rates:
                key = aim.tier, aim.group, aim.metric.removeprefix("delta_")
                curves.setdefault(key, {})[step] = aim
    return [_series(key, list(rows.items())) for key, rows in curves.items()]


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
        "item": group_name(group),
        "group": group,
        "metric": metric,
        "chance": None,
        "points": points,
        "bridge": {"value": last.bridge_value, "low": None, "high": None},
        "spread": spread_of(points),
        "note": f"Mean of {', '.join(last.items)}.",
    }


def chosen_step(found: StageResults) -> int | None:
    """Return the recommended step, or the last one."""
    recommended = found.recommendation.step if found.recommendation else None
    if recommended in found.steps:
        return recommended
    return max(found.steps, default=None)


def stage_verdict(found: StageResults) -> str | None:
    """Return the verdict on the recommended step."""
    return found.recommendation.verdict if found.recommendation else None


def advice(found: StageResults) -> dict[str, Any] | None:
    """Return the recommendation as pages show it; None if there is none."""
    content = found.recommendation
    if content is None or content.step is None:
        return None
    kind = (content.kind or "least bad").capitalize()
    steps = [entry.step for entry in content.beside]
    return {**content.model_dump(), "kind": kind, "beside": _beside(content), "beside_steps": steps}


def _beside(content: Recommendation) -> list[str]:
    """Return the steps that do not differ significantly from the recommended one, with changes."""
    known = content.headline and TIERS[content.headline.tier].metric(content.headline.metric)
    told = []
    for one in content.beside:
        has_change = known is not None and one.low is not None
        change = (
            change_in_words(known, one.delta, one.low, one.high) if known and has_change else ""
        )
        told.append(f"step {one.step}{f' ({change})' if change else ''}")
    return told


def aim_title(aim: Mapping[str, Any]) -> str:
    """Return an aim in words, e.g. `tier2 (hq): improve by more than 0.02 nats per token`."""
    tier = TIERS[aim["tier"]]
    metric = f" {aim['metric']}" if aim["metric"] else ""
    group = f" ({aim['group']})" if aim["group"] else ""
    size = size_in_words(tier.metric(aim["metric"] or tier.headline), aim["margin"])
    margin = f"by more than {size}" if aim["want"] == "improve" else f"within {size}"
    return f"{aim['tier']}{metric}{group}: {aim['want']} {margin}"


def headline_item(tier: TierName, group: str | None) -> str:
    """Return the item whose curve is the headline's."""
    if group is None:
        return OVERALL
    return group if TIERS[tier].rates else group_name(group)
