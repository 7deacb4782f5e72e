"""Aims as pages show them: verdicts in one unit, and a curve of each group that an aim is about."""

from collections.abc import Iterator
from typing import Any

from evaluation.reporting.headlines import change_in_words
from evaluation.reporting.pages.curves import Series, spread_of
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.results.deltas_file import AimRow, StepVerdict
from evaluation.settings.tiers import TIERS


def verdict_rows(found: StageResults, chosen: int | None) -> list[dict[str, Any]]:
    """Each step's verdict on each aim, the chosen step first."""
    steps = sorted(found.deltas.values(), key=lambda one: (one.step != chosen, one.step))
    return [_verdict_row(one) for one in steps]


def _verdict_row(entry: StepVerdict) -> dict[str, Any]:
    return {"step": entry.step, "verdict": entry.verdict, "aims": list(map(_aim, entry.aims))}


def _aim(aim: AimRow) -> dict[str, Any]:
    metric = aim.metric.removeprefix("delta_")
    known = TIERS[aim.tier].metric(metric)
    change = change_in_words(known, aim.delta, aim.low, aim.high)
    beyond = " by more than the margin" if aim.want == "keep" else ""
    return {
        "verdict": aim.verdict,
        "told": f"Δ {change}" if aim.low is not None else f"Δ {change}; {aim.why}",
        "more": [
            *(
                [f"could only detect changes of {change_in_words(known, aim.mde, sign='')} or more"]
                if aim.verdict == "undecided" and aim.mde is not None
                else []
            ),
            *([aim.companion.sentence] if aim.companion else []),
        ],
        "worse": f"significantly worse{beyond}: {', '.join(aim.regressions)}"
        if aim.regressions
        else "",
    }


def group_name(group: str) -> str:
    """What a group's curve is called, which no item is."""
    return f"{group} (group)"


def group_series(found: StageResults) -> list[Series]:
    """A curve of each group of items that an aim is about, with the numbers of its verdicts."""
    curves: dict[tuple[str, str, str], list[tuple[int, AimRow]]] = {}
    for step, aim in _group_aims(found):
        metric = aim.metric.removeprefix("delta_")
        curves.setdefault((aim.tier, str(aim.group), metric), []).append((step, aim))
    return [_series(key, rows) for key, rows in curves.items()]


def _group_aims(found: StageResults) -> Iterator[tuple[int, AimRow]]:
    """Once each; of rates a group is an item by itself."""
    for step, content in sorted(found.deltas.items()):
        named = {(aim.tier, aim.group, aim.metric): aim for aim in content.aims if aim.group}
        for aim in named.values():
            if not TIERS[aim.tier].rates:
                yield step, aim


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
