"""Tables for the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.bridge.deltas import OVERALL
from evaluation.bridge.write import DELTAS, RECOMMENDATION, read_json
from evaluation.settings.plan import StagePlan

SHOWN = {
    "tier2": ("delta_ppl", "Δppl"),
    "tier3": ("delta_acc", "Δacc"),
    "tier4": ("delta_all_checks_pass_rate", "Δchecks"),
}


def align(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells in columns, the first row underlined."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def bridge_table(plans: Mapping[str, StagePlan]) -> str:
    """Every stage's overall deltas, verdicts and recommendation."""
    return "\n\n".join(_stage(plan) for plan in plans.values())


def _stage(plan: StagePlan) -> str:
    if plan.stage.bridge is None:
        return f"{plan.name}: no bridge"
    path = plan.results / DELTAS
    if not path.exists():
        return f"{plan.name}: no {DELTAS} yet; run `snakemake {plan.name}`"
    content = read_json(path)
    deltas = content["deltas"]
    if not deltas:
        return f"{plan.name}: no step has been compared with its bridge"
    tiers = [tier for tier in SHOWN if any(delta["tier"] == tier for delta in deltas)]
    header = ["step", *(f"{tier} {SHOWN[tier][1]} [95 %]" for tier in tiers)]
    rows = [[*header, "better / worse", "verdict"]]
    for entry in content["verdicts"]:
        own = [delta for delta in deltas if delta["step"] == entry["step"]]
        cells = [_overall(own, tier) for tier in tiers]
        flags = [delta["flag"] for delta in own if delta["primary"]]
        counts = f"{flags.count('better')} / {flags.count('worse')} of {len(flags)}"
        rows.append([str(entry["step"]), *cells, counts, entry["verdict"] or "no objective"])
    title = f"{plan.name} against {deltas[0]['bridge']}"
    return "\n".join([title, align(rows), *advice_lines(plan)])


def _overall(deltas: Sequence[Mapping[str, Any]], tier: str) -> str:
    metric = SHOWN[tier][0]
    for delta in deltas:
        if (delta["tier"], delta["item"], delta["metric"]) == (tier, OVERALL, metric):
            if delta["low"] is None:
                return f"{delta['delta']:+.4f}"
            return f"{delta['delta']:+.4f} [{delta['low']:+.4f}, {delta['high']:+.4f}]"
    return "–"


def advice_lines(plan: StagePlan) -> list[str]:
    """A stage's recommendation in words; nothing where there is none yet."""
    path = plan.results / RECOMMENDATION
    if not path.exists():
        return []
    advice = read_json(path)
    if advice["step"] is None:
        return [f"recommendation: none; {advice['why']}"]
    lines = [f"{advice['kind']}: step {advice['step']} — {advice['why']}"]
    if advice["beside"]:
        beside = ", ".join(str(entry["step"]) for entry in advice["beside"])
        lines.append(f"not told apart from it: step {beside}")
    lines.append(advice["corrected_for"])
    return lines
