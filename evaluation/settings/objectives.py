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
from evaluation.settings.withdrawn import instead


class Objective(Settings):
    """One objective of a stage: to improve on the bridge, or to keep its level."""

    tier: TierName = Field(description="Tier of the objective.")
    want: Literal["improve", "keep"] = Field(description="Gain, or lose at most the margin.")
    group: Label | None = Field(None, description="Only slices or tasks of this group.")
    metric: str | None = Field(None, description="Its metric, if not the headline.")
    margin: Fraction = Field(
        ge=0,
        le=1000,
        description="Smallest gain that counts or largest loss allowed, in the metric's unit: nats per "
        "token, or a fraction.",
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
                f"margin: write {self.margin / 100:g}, a fraction, for {self.margin:g} points"
            )
        return self

    @property
    def decided_on(self) -> Metric:
        tier = TIERS[self.tier]
        return tier.metric(self.metric or tier.headline)


def settled_objective(objective: Objective, suite: Suite, key: str) -> Objective:
    """Return an objective; name its metric where its tasks have no choices to rank."""
    items, tier = objective_items(objective, suite, key), TIERS[objective.tier]
    if objective.tier != "tier3":
        return objective
    kinds = {task.kind: name for name, task in items.items()}
    known = dict.fromkeys(m for kind in sorted(kinds, reverse=True) for m in tier.metrics_by(kind))
    if objective.metric is None and len(kinds) > 1:
        raise ConfigError(
            f"{key}: {kinds['ranked']} ranks choices and {kinds['gold']} has none, so that no mean "
            f"holds the headlines of both; set `metric: {tier.unranked[0]}`, which all have, or "
            f"`metric: {tier.headline}` of those with choices"
        )
    if objective.metric not in (None, *known):
        where = f" of {next(iter(kinds.values()))}"
        raise ConfigError(
            f"{key}: metric: {no_such('metric', str(objective.metric), known, where)}"
        )
    metric = tier.unranked[0] if "gold" in kinds else None
    return objective.model_copy(update={"metric": objective.metric or metric})


def objective_items(objective: Objective, suite: Suite, key: str) -> Mapping[str, Any]:
    """Return the slices, tasks or prompts of an objective; raise ConfigError where there are none."""
    tier, group = TIERS[objective.tier], objective.group
    items: Mapping[str, Any] = getattr(suite, tier.section)
    if not items:
        raise ConfigError(f"{key}: the stage's suites hold nothing of {objective.tier}; correct it")
    if group is None:
        return items
    groups, heading = suite.tier_groups(objective.tier), "category" if tier.rates else "group"
    names = group_leaves(group, groups) if group in groups else ()
    if names and groups[group].weigh == "larger":
        raise ConfigError(
            f"{key}: group: {group} takes the larger of its tasks; name one task's group"
        )
    headings = {name: getattr(item, heading) for name, item in items.items()}
    if not (chosen := [name for name in items if name in names or headings[name] == group]):
        known = sorted({*headings.values()} - {None} | groups.keys())
        where = f" in {tier.name} of the stage's suites"
        raise ConfigError(f"{key}: group: {no_such(heading, group, known, where)}")
    return {name: items[name] for name in chosen}
