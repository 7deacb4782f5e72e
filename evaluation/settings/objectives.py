"""What a stage's objective aims at, held against the items of its suites."""

from collections.abc import Mapping
from typing import Any

from evaluation.errors import ConfigError
from evaluation.settings.aims import Aim
from evaluation.settings.groups import group_leaves
from evaluation.settings.suites import Suite
from evaluation.settings.tiers import TIERS
from evaluation.wording import did_you_mean, first_few, no_such


def settled_aim(aim: Aim, suite: Suite, key: str) -> Aim:
    """Return an aim with its metric named where it is of tasks that rank nothing.

    Args:
        aim: One entry of the stage's `objective`.
        suite: All that the stage evaluates.
        key: The aim's place in the configuration, for messages.

    Raises:
        ConfigError: where the suite has nothing of the aim's tier or group, where only some of its
            tasks have the metric, or none.
    """
    items = _aimed_items(aim, suite, key)
    if aim.tier != "tier3":
        return aim
    tier = TIERS[aim.tier]
    kinds = {task.decided_as: name for name, task in items.items()}
    measured = {task.kind for task in items.values()} | kinds.keys()
    known = dict.fromkeys(
        m for kind in sorted(measured, reverse=True) for m in tier.metrics_by(kind)
    )
    if aim.metric is not None and aim.metric not in known:
        raise ConfigError(
            f"{key}: metric: {no_such('metric', aim.metric, known, ' of ' + next(iter(kinds.values())))}"
        )
    if aim.metric is not None or "gold" not in kinds:
        return aim
    metric = tier.unranked[0]
    if "ranked" in kinds:
        raise ConfigError(
            f"{key}: {kinds['ranked']} ranks choices and {kinds['gold']} has none, so that no mean "
            f"holds the headlines of both; set `metric: {metric}`, which all have, or `metric: "
            f"{tier.headline}` of those with choices"
        )
    return aim.model_copy(update={"metric": metric})


def _aimed_items(aim: Aim, suite: Suite, key: str) -> Mapping[str, Any]:
    """Return the slices, tasks or prompts of an aim."""
    tier = TIERS[aim.tier]
    items: Mapping[str, Any] = getattr(suite, tier.section)
    if not items:
        raise ConfigError(
            f"{key}: the stage's suites hold nothing of {aim.tier}; correct the aim or the suites"
        )
    if aim.group is None:
        return items
    groups = suite.tier_groups(aim.tier)
    names = group_leaves(aim.group, groups) if aim.group in groups else ()
    heading = "category" if tier.rates else "group"
    chosen = {
        n: one for n, one in items.items() if n in names or getattr(one, heading) == aim.group
    }
    if not chosen:
        known = sorted({getattr(one, heading) for one in items.values()} - {None} | groups.keys())
        there = f"; there are {first_few(known)}" if known else f"; no {tier.item} is in one"
        raise ConfigError(
            f"{key}: group: {aim.tier} of the stage's suites has no {heading} {aim.group!r}"
            f"{did_you_mean(aim.group, known)}{there}"
        )
    return chosen
