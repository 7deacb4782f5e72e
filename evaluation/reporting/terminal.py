"""Tables for the terminal."""

from collections.abc import Iterable, Mapping, Sequence

from evaluation.bridge.delta import OVERALL
from evaluation.command_hints import snakemake
from evaluation.errors import ResultsError
from evaluation.escaping import printable
from evaluation.reporting.headlines import provisional
from evaluation.results.deltas_file import DELTAS, DeltaRow, StageDeltas, read_stage_deltas
from evaluation.results.stage_files import RECOMMENDATION, read_recommendation
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, Tier


def align(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells in columns, the first row underlined."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def bridge_table(plans: Mapping[str, StagePlan]) -> str:
    """Return every stage's overall deltas, verdicts and recommendation."""
    return "\n\n".join(_stage(plan) for plan in plans.values())


def _stage(plan: StagePlan) -> str:
    if plan.stage.bridge is None:
        return f"{plan.name}: no bridge"
    path = plan.results / DELTAS
    if not path.exists():
        return f"{plan.name}: no {DELTAS} yet; run `{snakemake(plan.name)}`"
    try:
        content = read_stage_deltas(path)
    except ResultsError as error:
        return f"{plan.name}: {error}"
    warnings = [f"warning: {note}" for note in content.notes]
    lines = [*_steps(content, plan.name), *content.left_out, *warnings, *advice_lines(plan)]
    return "\n".join(lines)


def _steps(content: StageDeltas, name: str) -> list[str]:
    deltas = content.deltas
    if not deltas:
        return [f"{name}: no step has been compared with its bridge"]
    tiers = [tier for key, tier in TIERS.items() if any(delta.tier == key for delta in deltas)]
    header = ["step", *(f"{tier.name} Δ{_short(tier)} [95 %]" for tier in tiers)]
    rows = [[*header, "better / worse", "verdict"]]
    for entry in content.verdicts:
        own = [delta for delta in deltas if delta.step == entry.step]
        cells = [_overall(own, tier) for tier in tiers]
        flags = [delta.flag for delta in own if delta.primary]
        counts = f"{flags.count('better')} / {flags.count('worse')} of {len(flags)}"
        rows.append([str(entry.step), *cells, counts, entry.verdict or "no objective"])
    return [f"{name} against {deltas[0].bridge}", align(rows)]


def _short(tier: Tier) -> str:
    return tier.shown.removesuffix("_rate")


def _overall(deltas: Iterable[DeltaRow], tier: Tier) -> str:
    for delta in deltas:
        if (delta.tier, delta.item, delta.metric) == (tier.name, OVERALL, f"delta_{tier.shown}"):
            if delta.low is None or delta.high is None:
                return f"{delta.delta:+.4f}"
            return f"{delta.delta:+.4f} [{delta.low:+.4f}, {delta.high:+.4f}]"
    return "–"


def advice_lines(plan: StagePlan) -> list[str]:
    """Return a stage's recommendation in words; nothing where there is none yet."""
    path = plan.results / RECOMMENDATION
    if not path.exists():
        return []
    try:
        advice = read_recommendation(path)
    except ResultsError as error:
        return [f"recommendation: none; {error}"]
    if advice.step is None:
        return [f"recommendation: none{provisional(advice)}; {advice.why}"]
    lines = [f"{advice.kind}{provisional(advice)}: step {advice.step} — {advice.why}"]
    lines += [*advice.companions, *(average.sentence for average in advice.averages)]
    if advice.beside:
        beside = ", ".join(str(entry.step) for entry in advice.beside)
        lines.append(f"not significantly different: step {beside}")
    lines += [advice.corrected_for] if advice.corrected_for else []
    return lines
