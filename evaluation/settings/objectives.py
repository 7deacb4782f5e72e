"""Objectives of a stage, checked against the items of its suites."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from evaluation.errors import ConfigError, no_such
from evaluation.settings.groups import group_leaves
from evaluation.settings.metric import Metric
from evaluation.settings.model import Fraction, Settings
from evaluation.settings.names import Label
from evaluation.settings.suites import Suite
from evaluation.settings.tiers import TIERS, TierName
from evaluation.withdrawn import instead


class Objective(Settings):
    """One objective of a stage: to improve on the bridge, or to keep its level."""

    tier: TierName = Field(description="Tier of the objective.")
    want: Literal["improve", "keep"] = Field(
        description="`improve`: gain on the bridge; `keep`: lose no more than the margin."
    )
    group: Label | None = Field(None, description="Only slices or tasks of this group.")
    metric: str | None = Field(
        None, description="Metric that decides it, if not the headline (docs/measures.md)."
    )
    margin: Fraction = Field(
        ge=0,
        le=1000,
        description="Smallest gain that counts (`improve`) or largest loss allowed (`keep`): "
        "nats per token for tier2, a fraction for tier3 and tier4, the unit of `metric`.",
    )

    @model_validator(mode="after")
    def _fits_its_tier(self) -> Self:
        tier, metric = TIERS[self.tier], self.decided_on
        if metric.name not in (known := [tier.headline, *tier.others]):
            withdrawn = instead("value", metric.name)
            missing = no_such("metric", metric.name, known, f" of {tier.name}")
            raise ValueError(f"metric: {f'{metric.name} {withdrawn}' if withdrawn else missing}")
        if metric.unit == "fraction" and self.margin >= 1:
            raise ValueError(
                f"margin: {self.margin:g} is more than a fraction can change; write "
                f"{self.margin / 100:g} for {metric.size(self.margin / 100)}"
            )
        return self

    @property
    def decided_on(self) -> Metric:
        """The metric that decides it."""
        tier = TIERS[self.tier]
        return tier.metric(self.metric or tier.headline)

    @property
    def title(self) -> str:
        """The objective in words, as `Ranked choices (tier3), accuracy: any gain is wanted`."""
        metric = self.decided_on
        named = objective_in_words(self.tier, metric, self.group)
        return f"{named}: {aim_in_words(self.want, self.margin, metric)}"


def objective_in_words(tier: TierName, metric: Metric, group: str | None) -> str:
    """Return an objective's metric with the tier's title and name, and its group."""
    of = f" of {group}" if group else ""
    return f"{TIERS[tier].title} ({tier}), {metric.words}{of}"


def aim_in_words(want: Literal["improve", "keep"], margin: float, metric: Metric) -> str:
    """Return what is wanted of an objective's metric, as `a gain of more than 1 point is wanted`."""
    size = metric.size(margin)
    if want == "improve":
        gain = f"a gain of more than {size}" if margin else "any gain"
        return f"{gain} is wanted"
    loss = f"a loss of at most {size}" if margin else "no loss"
    return f"{loss} is allowed"


def settled_objective(objective: Objective, suite: Suite, key: str) -> Objective:
    """Return an objective; name its metric where its tasks have no choices to rank.

    Args:
        suite: All that the stage evaluates.
        key: The objective's place in the configuration, for messages.

    Raises:
        ConfigError: The suite has nothing of the objective's tier or group, or only some of its
            tasks, or none, have the metric.
    """
    items = objective_items(objective, suite, key)
    if objective.tier != "tier3":
        return objective
    tier = TIERS[objective.tier]
    kinds = {task.kind: name for name, task in items.items()}
    known = dict.fromkeys(m for kind in sorted(kinds, reverse=True) for m in tier.metrics_by(kind))
    if objective.metric is not None and objective.metric not in known:
        where = f" of {next(iter(kinds.values()))}"
        raise ConfigError(f"{key}: metric: {no_such('metric', objective.metric, known, where)}")
    if objective.metric is not None or "gold" not in kinds:
        return objective
    if "ranked" in kinds:
        raise ConfigError(
            f"{key}: {kinds['ranked']} ranks choices and {kinds['gold']} has none, so that no mean "
            f"holds the headlines of both; set `metric: {tier.unranked[0]}`, which all have, or "
            f"`metric: {tier.headline}` of those with choices"
        )
    return objective.model_copy(update={"metric": tier.unranked[0]})


def objective_items(objective: Objective, suite: Suite, key: str) -> Mapping[str, Any]:
    """Return the slices, tasks or prompts of an objective; raise ConfigError where there are none."""
    tier = TIERS[objective.tier]
    items: Mapping[str, Any] = getattr(suite, tier.section)
    if not items:
        raise ConfigError(f"{key}: the stage's suites hold nothing of {objective.tier}; correct it")
    if objective.group is None:
        return items
    groups = suite.tier_groups(objective.tier)
    names = group_leaves(objective.group, groups) if objective.group in groups else ()
    heading = "category" if tier.rates else "group"
    chosen = {
        name: item
        for name, item in items.items()
        if name in names or getattr(item, heading) == objective.group
    }
    if not chosen:
        known = sorted({getattr(item, heading) for item in items.values()} - {None} | groups.keys())
        where = f" in {tier.name} of the stage's suites"
        raise ConfigError(f"{key}: group: {no_such(heading, objective.group, known, where)}")
    return chosen
