"""What accompanies an objective's interval: a secondary metric, the recipe, what limits a mean."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from evaluation.bridge.averages import Scatter
from evaluation.bridge.delta import Delta
from evaluation.bridge.estimate import Estimate
from evaluation.bridge.means import gain_interval, secondary_delta
from evaluation.bridge.paired_binary import at_alpha, detectable
from evaluation.bridge.recipes import of_recipe
from evaluation.bridge.weighted_mean import macro_mean
from evaluation.results.delta_rows import Change
from evaluation.results.objective_rows import ObjectiveVerdict, RecipeRow, SecondaryRow
from evaluation.settings.objectives import Objective


def needed_gain(objective: Objective) -> float:
    """Return the gain that a step must be shown to have; negative for an objective to keep."""
    return objective.margin if objective.want == "improve" else -objective.margin


def verdict_on(objective: Objective, low: float | None, high: float | None) -> ObjectiveVerdict:
    """Return the verdict on an objective by the interval of the gain; without interval, it is `undecided`."""
    if low is None or high is None:
        return "undecided"
    needed = needed_gain(objective)
    if objective.want == "improve":
        is_met, is_missed = low > needed, high <= needed
    else:
        is_met, is_missed = low >= needed, high < needed
    return "met" if is_met else "not met" if is_missed else "undecided"


def secondary_row(
    objective: Objective, deltas: Sequence[Delta], alpha: float
) -> SecondaryRow | None:
    """Return what a secondary metric shows on an undecided objective; None where it has no interval."""
    delta = secondary_delta(objective, deltas)
    if delta is None:
        return None
    estimate = at_alpha(delta.estimate, alpha)
    low, high = gain_interval(delta.sign, estimate)
    if low is None or high is None:
        return None
    shows: Literal["better", "worse", "undecided"] = (
        "better" if low > 0 else "worse" if high < 0 else "undecided"
    )
    metric = delta.definition
    text = f"undecided too, {metric.change(estimate.value, estimate.low, estimate.high)}"
    if shows != "undecided":  # by its size, whichever sign means better
        low, high = sorted((abs(low), abs(high)))
        size = metric.change(abs(estimate.value), low, high, sign="")
        text = f"{shows} by {size}"
    group = f" of {objective.group}" if objective.group else ""
    sentence = f"{objective.decided_on.words}{group} undecided; {metric.words} {text}"
    bounds: dict[str, Any] = {"delta": estimate.value, "low": estimate.low, "high": estimate.high}
    return SecondaryRow(metric=delta.metric, shows=shows, sentence=sentence, **bounds)


def format_or_ability(parts: Sequence[Delta], deltas: Sequence[Delta]) -> str:
    """Return a question where a task's rate changed, but hardly by another of its verifiers; else nothing.

    A strict verifier counts answers in one form only, so its rate also changes with the form.
    """
    for part in parts:
        low, high = part.estimate.low, part.estimate.high
        if part.tier != "tier5" or low is None or high is None or low <= 0 <= high:
            continue
        for other in deltas:
            is_other = other.item == part.item and other.metric.startswith(f"{part.metric}_")
            if is_other and other.gain / part.gain < 1 / 3:
                rates = [
                    f"{delta.definition.level(delta.bridge_value)} to {delta.definition.level(delta.value)}"
                    for delta in (part, other)
                ]
                view = other.metric.removeprefix(f"{part.metric}_")
                return f"; {part.item}: format or ability? {rates[0]}, but by {view} {rates[1]}; see both"
    return ""


_MUCH = 0.4
"""Share of a mean's variance from which one item is named."""


def limited_by(delta: Delta, alpha: float) -> str | None:
    """Return what limits a mean that one item dominates, and what would be detectable otherwise, if less."""
    parts, weights = delta.estimate.parts, delta.estimate.weights
    shares = delta.estimate.shares
    if len(parts) < 3 or max(shares.values(), default=0.0) < max(_MUCH, 1.5 / len(parts)):
        return None
    most = max(shares, key=lambda name: shares[name])
    left = {name: part for name, part in parts.items() if name != most}
    total = math.fsum(weights[name] for name in left)
    without = macro_mean(left, {name: weights[name] / total for name in left})
    sizes = {name: part.n / sum(part.n for part in parts.values()) for name, part in parts.items()}
    by_questions = macro_mean(parts, sizes)
    found = [(f"without {most}", without), ("weighed by questions", by_questions)]
    metric = delta.definition
    now = detectable(delta.estimate, alpha)
    others = [
        f"{metric.change(mde, sign='')} {how}"
        for how, estimate in found
        if (mde := detectable(estimate, alpha)) is not None and (now is None or mde < now)
    ]
    if not others:
        return None
    text = f"{most} carries {100 * shares[most]:.0f} % of the variance"
    return f"{text}; detectable would be {' or '.join(others)}"


def recipe_row(
    objective: Objective,
    delta: Delta,
    weights: Change,
    ours: Scatter | None,
    bridge: Scatter | None,
) -> RecipeRow | None:
    """Return what an objective's delta shows of the recipe; None where the noise of checkpoints is unknown.

    The interval of the weights decides for all checkpoints together, so it may be wider; that of the recipe
    then reaches as far.

    Args:
        weights: The delta with the interval that decides about these weights.
        bridge: The noise of the bridge's own stage; None if it is assumed equal.
    """
    recipe = of_recipe(delta.estimate, ours, bridge)
    if ours is None or recipe is None or recipe.low is None or recipe.high is None:
        return None
    share = _share_of_checkpoints(delta.estimate, recipe)
    low, high = recipe.low, recipe.high
    if weights.low is not None and weights.high is not None:
        low, high = min(low, weights.low), max(high, weights.high)
    recipe = replace(recipe, low=low, high=high)
    verdict = verdict_on(objective, *gain_interval(delta.sign, recipe))
    metric, group = delta.definition, f" of {objective.group}" if objective.group else ""
    source = "assumed equal"
    if bridge is not None:
        source = f"read from the last {bridge.checkpoints} of its own stage"
    se = math.sqrt(max(0.0, (recipe.se or 0.0) ** 2 - (delta.estimate.se or 0.0) ** 2))
    return RecipeRow(
        low=low,
        high=high,
        se_checkpoints=se,
        share_checkpoints=share,
        checkpoints=ours.checkpoints,
        bridge_checkpoints=None if bridge is None else bridge.checkpoints,
        verdict=verdict,
        sentence=f"{metric.words}{group} of the recipe: {verdict}, "
        f"{metric.change(recipe.value, recipe.low, recipe.high)} with the noise of the last "
        f"{ours.checkpoints} checkpoints, the bridge's {source}",
    )


def _share_of_checkpoints(items: Estimate, recipe: Estimate) -> float:
    """Return the share of a recipe's squared width that checkpoints add to that of its questions."""
    widths = [
        estimate.high - estimate.low
        for estimate in (items, recipe)
        if estimate.low is not None and estimate.high is not None
    ]
    return 1 - (widths[0] / widths[1]) ** 2 if len(widths) == 2 and widths[1] > 0 else 0.0
