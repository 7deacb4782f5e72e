"""Tables as text; the bridge table and recommendations, also for `--json`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tabulate import tabulate

from evaluation.bridge.delta import OVERALL
from evaluation.errors import ResultsError, printable
from evaluation.reporting.headlines import recommendation_line, shown_metrics, steps_in_words
from evaluation.results.delta_rows import DeltaRow
from evaluation.results.deltas_file import DELTAS, StageDeltas
from evaluation.results.stage_files import RECOMMENDATION, Recommendation
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, Tier


def as_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as aligned columns, the first row underlined; control characters are escaped."""
    head, *rest = [[printable(cell) for cell in row] for row in rows]
    return str(tabulate(rest, headers=head, disable_numparse=True))


def bridge_table(plans: Mapping[str, StagePlan]) -> str:
    """Return every stage's overall deltas, verdicts and recommendation, or a sentence why there are none."""
    return "\n\n".join(_stage(plan) for plan in plans.values())


def bridge_verdicts(plans: Mapping[str, StagePlan]) -> dict[str, Any]:
    """Return every stage's deltas and recommendation as `bridge-table --json` prints them."""
    by_stage: dict[str, dict[str, Any]] = {}
    for name, plan in plans.items():
        content, path = _deltas(plan), plan.results / RECOMMENDATION
        by_stage[name] = {"deltas": None, "recommendation": None, "note": None}
        if isinstance(content, str):
            by_stage[name]["note"] = content
            continue
        by_stage[name]["deltas"] = content.model_dump(mode="json")
        if path.exists():
            by_stage[name]["recommendation"] = Recommendation.read(path).model_dump(mode="json")
    return {"stages": by_stage}


def _deltas(plan: StagePlan) -> StageDeltas | str:
    """Return a stage's deltas, or why there are none."""
    path = plan.results / DELTAS
    if plan.stage.bridge is None:
        return "no bridge"
    if not path.exists():
        return f"no {DELTAS} yet; run `snakemake {plan.name}`"
    try:
        return StageDeltas.read(path)
    except ResultsError as error:
        return str(error)


def _stage(plan: StagePlan) -> str:
    content = _deltas(plan)
    if isinstance(content, str):
        return f"{plan.name}: {content}"
    warnings = [f"warning: {note}" for note in content.notes]
    lines = [*_steps(content, plan), *content.left_out, *warnings, *advice_lines(plan)]
    return "\n".join(lines)


def _steps(content: StageDeltas, plan: StagePlan) -> list[str]:
    deltas, stage = content.deltas, plan.name
    if not deltas:
        return [f"{stage}: no step has been compared with its bridge"]
    metrics = shown_metrics((delta.tier, delta.item, delta.metric) for delta in deltas)
    tiers = [(tier, metrics.get((key, OVERALL), tier.shown)) for key, tier in TIERS.items()]
    tiers = [tier for tier in tiers if any(delta.tier == tier[0].name for delta in deltas)]
    columns = [tier.metric(shown).column.replace("_rate", "") for tier, shown in tiers]
    names = [f"{tier.name} Δ{name} [95 %]" for (tier, _), name in zip(tiers, columns, strict=True)]
    rows = [["step", *names, "better / worse", "verdict"]]
    for entry in content.verdicts:
        own = [delta for delta in deltas if delta.step == entry.step]
        cells = [_overall(own, *tier) for tier in tiers]
        flags = [delta.flag for delta in own if delta.primary]
        counts = f"{flags.count('better')} / {flags.count('worse')} of {len(flags)}"
        step = plan.label(entry.step).partition(" ")[2]
        rows.append([step, *cells, counts, entry.verdict or "no objective"])
    return [f"{stage} against {deltas[0].bridge}", as_table(rows)]


def _overall(deltas: Iterable[DeltaRow], tier: Tier, shown: str) -> str:
    for delta in deltas:
        if (delta.tier, delta.item, delta.metric) == (tier.name, OVERALL, f"delta_{shown}"):
            metric = tier.metric(shown)
            change = metric.number(delta.delta, "+")
            if delta.low is None or delta.high is None:
                return change
            return f"{change} {metric.interval(delta.low, delta.high)}"
    return "–"


def advice_lines(plan: StagePlan) -> list[str]:
    """Return a stage's recommendation in words; none where there is no recommendation yet."""
    path = plan.results / RECOMMENDATION
    if not path.exists():
        return []
    try:
        advice = Recommendation.read(path)
    except ResultsError as error:
        return [f"recommendation: none; {error}"]
    lines = [recommendation_line(advice, plan.label)]
    if advice.similar:
        similar = steps_in_words([entry.step for entry in advice.similar], ", ".join)
        lines.append(f"not significantly different: {similar}")
    lines += [advice.corrected_for] if advice.corrected_for else []
    return lines
