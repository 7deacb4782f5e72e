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
from evaluation.results.deltas_file import ObjectiveVerdict
from evaluation.settings.objectives import Objective

_ORDER: Sequence[ObjectiveVerdict] = ("met", "undecided", "not met")


def choose(steps: Sequence[JudgedStep], headline: int) -> tuple[JudgedStep, list[JudgedStep]]:
    """Return the step to name, and the pool that it was chosen from; `headline` ranks equal verdicts."""
    keeping = [step for step in steps if not step.breaks_a_keep]
    if not keeping:
        return max(steps, key=lambda step: (-step.worst_loss, step.step)), list(steps)
    best = min(_ORDER.index(step.verdict) for step in keeping)
    pool = [step for step in keeping if step.verdict == _ORDER[best]]
    gains = [(step.objectives[headline].gain, step.step) for step in pool]
    return pool[gains.index(max(gains))], pool  # of equal ones, the latest step


def recommend(
    stage: str,
    objectives: Sequence[Objective],
    decision: Decision | None,
    paths: Mapping[int, str],
) -> dict[str, Any]:
    """Return the content of `recommendation.json`."""
    if decision is None:
        why = "no step has been compared with the bridge"
        return no_step(stage, why if objectives else "the stage has no objective")
    best, pool = choose(decision.steps, decision.headline)
    similar = _not_behind(decision, best, pool)
    row = best.objectives[decision.headline]
    names = ("tier", "group", "value", "bridge_value", "delta", "low", "high")
    return {
        "stage": stage,
        "step": best.step,
        "checkpoint": paths[best.step],
        "verdict": best.verdict,
        "own_verdict": best.own_verdict,
        "confidence": [round(1 - alpha, 6) for alpha in decision.alphas],
        "headline": {
            **{name: getattr(row, name) for name in names},
            "metric": row.metric.removeprefix("delta_"),
        },
        "similar": similar,
        "runner_up": _runner_up(decision, best, pool, {entry["step"] for entry in similar}),
    }


def no_step(stage: str, why: str) -> dict[str, Any]:
    """Return the content of `recommendation.json` where no step is recommended, with the reason."""
    return {"stage": stage, "step": None, "why": why, "similar": []}


def _runner_up(
    decision: Decision, best: JudgedStep, pool: Sequence[JudgedStep], similar: Collection[int]
) -> dict[str, Any] | None:
    """Return the step that is chosen among the others, and how it differs from the best."""
    others = [step for step in decision.steps if step.step != best.step]
    if not others:
        return None
    step, _ = choose(others, decision.headline)
    why = f"whose objective is {step.verdict}"
    if step.step in similar:
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
