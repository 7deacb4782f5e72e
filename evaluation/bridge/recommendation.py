"""Recommendation of one checkpoint of a stage.

The headline is the stage's first `improve` objective (its first objective if it has none). Steps are ordered
by verdict (met, undecided, not met), then by the headline; steps that break a `keep` come last, the one whose
largest loss, in units of its margin, is smallest before the others. The first is named; those of its verdict
that are not significantly worse (see `choice`) are listed with it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evaluation.bridge.choice import against
from evaluation.bridge.decision import Decision, JudgedStep
from evaluation.bridge.estimate import ALPHA, at_alpha
from evaluation.results.deltas_file import ObjectiveRow, ObjectiveVerdict
from evaluation.settings.objectives import Objective

KINDS: Mapping[ObjectiveVerdict, str] = {
    "met": "recommended",
    "undecided": "best candidate",
    "not met": "least bad",
}
"""What the named step of a stage is called, by its verdict."""

_OPEN = "`steps` is no list: the verdict is for one look, not if judged again after each new checkpoint."


def choose(steps: Sequence[JudgedStep], headline: int) -> tuple[JudgedStep, list[JudgedStep]]:
    """Return the step to name, and the pool that it was chosen from; `headline` ranks equal verdicts."""

    def rank(step: JudgedStep) -> tuple[int, float, int]:
        if step.breaks_a_keep:
            return -len(KINDS), -step.worst_loss[0], step.step
        gain = step.objectives[headline].gain
        return -list(KINDS).index(step.verdict), gain, step.step  # of equal ones, the latest step

    best = max(steps, key=rank)
    if best.breaks_a_keep:
        return best, list(steps)
    return best, [s for s in steps if s.verdict == best.verdict and not s.breaks_a_keep]


def recommend(
    stage: str,
    objectives: Sequence[Objective],
    decision: Decision | None,
    paths: Mapping[int, str],
    *,
    is_open: bool = False,
) -> dict[str, Any]:
    """Return the content of `recommendation.json`; `is_open` if the number of steps is not known."""
    if decision is None:
        why = "no step has been compared with the bridge"
        return no_step(stage, why if objectives else "the stage has no objective")
    headline = decision.headline
    best, pool = choose(decision.steps, headline)
    similar = _not_behind(decision, best, pool)
    named = {best.step, *(entry["step"] for entry in similar)}
    others = [step for step in decision.steps if step.step not in named]
    row, names = (
        best.objectives[headline],
        ("tier", "group", "value", "bridge_value", "delta", "low"),
    )
    about = {name: getattr(row, name) for name in (*names, "high")}
    return {
        "stage": stage,
        "step": best.step,
        "checkpoint": paths[best.step],
        "meets": best.verdict == "met",
        "kind": KINDS[best.verdict],
        "verdict": best.verdict,
        "own_verdict": best.own_verdict,
        "why": _why(best, decision.steps, headline),
        "corrected_for": _corrected_for(decision, is_open=is_open),
        "confidence": [round(1 - alpha, 6) for alpha in decision.alphas],
        "headline": {**about, "metric": row.metric.removeprefix("delta_")},
        "similar": similar,
        "others": [
            {"step": s.step, "verdict": s.verdict, "why": _fell_out(s, best, pool, headline)}
            for s in others
        ],
        "runner_up": _runner_up(decision, best, pool, named),
    }


def no_step(stage: str, why: str) -> dict[str, Any]:
    """Return the content of `recommendation.json` where no step is recommended, with the reason."""
    return {"stage": stage, "step": None, "meets": None, "why": why, "similar": [], "others": []}


def _runner_up(
    decision: Decision, best: JudgedStep, pool: Sequence[JudgedStep], named: Collection[int]
) -> dict[str, Any] | None:
    """Return the step that is chosen among the others; `named` are the best, and those like it."""
    others = [step for step in decision.steps if step.step != best.step]
    if not others:
        return None
    step, _ = choose(others, decision.headline)
    why = f"whose objective is {step.verdict}"
    if step.step in named:
        why = "not significantly different"
    elif step in pool:
        why = "significantly behind"
    elif step.breaks_a_keep:
        why = "which loses what the objective keeps"
    return {"step": step.step, "verdict": step.verdict, "why": why}


def _not_behind(
    decision: Decision, best: JudgedStep, pool: Sequence[JudgedStep]
) -> list[dict[str, Any]]:
    """Return the pool's steps that are not significantly worse than the best, with simultaneous intervals."""
    estimates = dict(zip((step.step for step in decision.steps), decision.decisive, strict=True))
    head, steps = estimates[best.step], len(decision.steps)
    pairs = max(1, steps * (steps - 1) // 2)
    similar: list[dict[str, Any]] = []
    for step in (step for step in pool if step.step != best.step):
        pair = against(estimates[step.step].estimate, head.estimate)
        pair = None if pair is None else at_alpha(pair, ALPHA / pairs)
        p = None if pair is None or pair.p is None else min(1.0, pairs * pair.p)
        ours, theirs = (found.objectives[decision.headline].value for found in (step, best))
        if p is None or p >= ALPHA or head.sign * (ours - theirs) >= 0:
            bounds = {name: pair and getattr(pair, name) for name in ("low", "high")}
            similar.append({"step": step.step, "delta": ours - theirs, **bounds, "p": p})
    return similar


def _corrected_for(decision: Decision, *, is_open: bool) -> str:
    """State how a stage's verdict is corrected for the choice among its checkpoints."""
    count = len(decision.steps) + decision.awaited
    confidence = 100 * (1 - min(decision.alphas, default=ALPHA))
    text = (
        f"The best of {count} checkpoints looks better than it is, so simultaneous intervals for all "
        f"{count} decide ({confidence:.1f} % for each checkpoint), not the 95 % interval of each."
    )
    if count == 1:
        text = "One checkpoint was compared with the bridge, so its own 95 % intervals decide."
    if decision.awaited and count > 1:
        text += f" {decision.awaited} of them are to come; the correction includes them."
    return f"{text} {_OPEN}" if is_open else text


def _headline(row: ObjectiveRow) -> str:
    metric, of = row.definition, f" of {row.group}" if row.group else ""
    return f"{metric.words}{of} {metric.level(row.value)} (bridge {metric.level(row.bridge_value)})"


def _why(best: JudgedStep, steps: Sequence[JudgedStep], headline: int) -> str:
    text = _headline(best.objectives[headline])
    if best.verdict == "met":
        return f"meets the objective, with the best {text}"
    is_open = any(step.verdict == "undecided" for step in steps)
    none = "none is shown to meet the objective (undecided)" if is_open else None
    none = none or "no step meets the objective"
    named = f"the {KINDS[best.verdict]}{' one' if best.verdict == 'not met' else ''}"
    alone = "; taken alone it would meet it" if best.own_verdict == "met" else ""
    row, by = best.worst_loss[1], ""
    if best.breaks_a_keep and row is not None:
        size = row.definition.change(-row.gain, sign="")
        by = f"its largest loss is the smallest in units of the margins ({row.in_words}: {size}); "
    return f"{none}; this is {named}, with {text}: {by}{_failing(best)}{alone}"


def _failing(step: JudgedStep) -> str:
    failing = [row for row in step.objectives if row.verdict != "met"]
    return "; ".join(f"{row.in_words}, to {row.want}: {row.verdict} ({row.why})" for row in failing)


def _fell_out(step: JudgedStep, best: JudgedStep, pool: Sequence[JudgedStep], headline: int) -> str:
    if step in pool:
        return (
            f"its {_headline(step.objectives[headline])} is significantly behind step {best.step}"
        )
    alone = "; taken alone it would meet the objective" if step.own_verdict == "met" else ""
    return f"{_failing(step)}{alone}"
