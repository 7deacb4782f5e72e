"""Two runs as text: how their overall values part over the matched checkpoints, and who is ahead."""

from collections.abc import Iterator, Sequence

from evaluation.bridge.delta import OVERALL, Delta
from evaluation.bridge.statistics import Estimate
from evaluation.reporting.compare import delta_cells, ending
from evaluation.reporting.terminal import align
from evaluation.runs.compare import ComparedRuns, ComparedStage
from evaluation.runs.leads import Lead, corrected_for, lead_sentence

MOST = 12
"""Matched checkpoints whose steps are listed."""


def runs_as_text(runs: ComparedRuns) -> str:
    """Every stage that both have, then what is not compared."""
    parts = [f"A = {runs.ours.path}\nB = {runs.theirs.path}"]
    parts += [_stage(stage) for stage in runs.stages]
    parts += ["\n".join(f"not compared: {note}" for note in runs.notes)] if runs.notes else []
    return "\n\n".join(parts)


def is_worse_at_last(runs: ComparedRuns) -> bool | None:
    """Whether A is significantly worse anywhere at the last matched checkpoints of a stage.

    None where nothing of a stage could be tested.
    """
    last = [stage.deltas[-1] for stage in runs.stages]
    if not all(any(delta.estimate.p is not None for delta in own) for own in last):
        return None
    return any(ending(own)[1] for own in last)


def _stage(stage: ComparedStage) -> str:
    deltas, text = stage.deltas[-1], [_title(stage)]
    overall = [lead for lead in stage.leads if lead.key[1] == OVERALL]
    if len(stage.matched) > 1:
        text.append(align([_STEP_HEAD, *_by_step(stage, overall)]))
    shown = [delta for delta in deltas if delta.primary or delta.item == OVERALL]
    rows = [delta_cells(delta) for delta in shown]
    text.append(f"At {stage.matched[-1].label}:\n{align([_ITEM_HEAD, *rows])}")
    text.append("\n".join(lead_sentence(lead, stage.matched) for lead in overall))
    text.append(
        "\n".join([ending(deltas)[0], corrected_for(stage.leads, len(stage.matched)), *stage.notes])
    )
    return "\n\n".join(text)


_STEP_HEAD = ["step", "tier", "metric", "A", "B", "A - B", "95 %", "95 %, all steps", "p"]
_ITEM_HEAD = ["tier", "item", "metric", "A", "B", "A - B", "95 %", "p", "p (Holm)", "MDE", ""]


def _title(stage: ComparedStage) -> str:
    names = " against ".join(dict.fromkeys(stage.stages))
    steps = [str(match.ours.step) for match in stage.matched]
    shown = steps if len(steps) <= MOST else [*steps[: MOST - 2], "…", steps[-1]]
    count = f"{len(steps)} matched checkpoint{'s' if len(steps) > 1 else ''}"
    return f"{names}: {count} by {stage.how.by} (A's step {', '.join(shown)})"


def _by_step(stage: ComparedStage, overall: Sequence[Lead]) -> Iterator[list[str]]:
    for number, match in enumerate(stage.matched):
        for lead in overall:
            delta, at_once = lead.deltas[number], lead.estimates[number]
            mine, other = match.ours.step, match.theirs.step
            yield [
                str(mine) if mine == other else f"{mine} / {other}",
                *_numbers(delta),
                _interval(delta.estimate),
                _interval(at_once),
                "–" if delta.estimate.p is None else f"{delta.estimate.p:.2g}",
            ]


def _numbers(delta: Delta) -> list[str]:
    values = f"{delta.value:.4f}", f"{delta.bridge_value:.4f}", f"{delta.estimate.value:+.4f}"
    return [delta.tier, delta.metric.removeprefix("delta_"), *values]


def _interval(known: Estimate) -> str:
    return "–" if known.low is None else f"[{known.low:+.4f}, {known.high:+.4f}]"
