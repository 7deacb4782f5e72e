"""Groups of slices or tasks: weighted means of members, which may be groups, too."""

import math
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from evaluation.errors import ConfigError, no_such
from evaluation.settings.model import Settings, distinct
from evaluation.settings.names import Label
from evaluation.settings.tiers import TIERS, TierName


class Group(Settings):
    """A mean over slices, tasks and other groups."""

    tier: TierName = Field(description="Tier of its members.")
    members: Annotated[tuple[Label, ...], AfterValidator(distinct)] = Field(
        min_length=1, description="Slices or tasks, or other groups, by name."
    )
    weigh: Literal["members", "leaves", "questions", "larger"] = Field(
        "members",
        description="What counts once: its `members`, their `leaves` (slices or tasks), or `questions` "
        "(prompts, blocks); `larger`: the task with the largest value alone.",
    )
    centered: bool = Field(
        False,
        description="Mean of (accuracy - chance) / (1 - chance), as DCLM's CORE.",
    )


Groups = Mapping[str, Group]


def group_leaves(name: str, groups: Groups) -> list[str]:
    """Return the slices or tasks of a group and of the groups in it, each once, in order."""
    leaves: dict[str, None] = {}
    groups = _of_its_tier(groups[name], groups)
    for member in groups[name].members:
        leaves |= dict.fromkeys(group_leaves(member, groups) if member in groups else (member,))
    return list(leaves)


def group_weights(
    name: str, groups: Groups, questions: Mapping[str, int], values: Mapping[str, float]
) -> dict[str, float]:
    """Return the weight, of 1, of each item in a group's mean, by its count of `questions` or its value."""
    group = groups[name]
    groups = _of_its_tier(group, groups)
    if group.weigh == "larger":
        return {max(group.members, key=lambda member: values[member]): 1.0}
    if group.weigh != "members":
        leaves = group_leaves(name, groups)
        sizes = [questions[leaf] if group.weigh == "questions" else 1 for leaf in leaves]
        return {leaf: size / sum(sizes) for leaf, size in zip(leaves, sizes, strict=True)}
    weights: dict[str, float] = {}
    for member in group.members:
        inner = group_weights(member, groups, questions, {}) if member in groups else {member: 1.0}
        for leaf, weight in inner.items():
            weights[leaf] = weights.get(leaf, 0.0) + weight / len(group.members)
    return weights


def centered_weights(
    weights: Mapping[str, float], chances: Mapping[str, float]
) -> tuple[dict[str, float], float]:
    """Return weights of accuracies whose sum less the returned offset is a mean of centred ones."""
    centered = {item: weight / (1 - chances[item]) for item, weight in weights.items()}
    return centered, math.fsum(weight * chances[item] for item, weight in centered.items())


def _of_its_tier(group: Group, groups: Groups) -> Groups:
    """Return the groups of its tier; one of another tier may be named like one of its items."""
    return {name: other for name, other in groups.items() if other.tier == group.tier}


def check_groups(
    origin: str, groups: Groups, items: Mapping[TierName, Mapping[str, object]]
) -> None:
    """Refuse groups whose members, the `items` of each tier, cannot be averaged."""
    graph = {n: _of_its_tier(g, groups).keys() & g.members for n, g in groups.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " > ".join(error.args[1])
        raise ConfigError(f"{origin}: groups.{circle}: they hold each other in a circle") from None
    for name, group in groups.items():
        if problem := _problem(name, group, _of_its_tier(group, groups), items.get(group.tier, {})):
            raise ConfigError(f"{origin}: groups.{name}: {problem}")


def _problem(name: str, group: Group, groups: Groups, items: Mapping[str, object]) -> str | None:
    tier = TIERS[group.tier]
    if tier.rates:
        return f"{tier.name} has rates over all {tier.unit} and no mean of them; take it out"
    if name in items or name in {getattr(item, "group", None) for item in items.values()}:
        return f"a {tier.item}, or the `group` of one, has this name; rename one of them"
    inner = [groups[member] for member in group.members if member in groups]
    if any(one.weigh == "larger" for one in (group, *inner)) and (inner or tier.name == "tier2"):
        return "weigh: larger: such a group has tasks alone, and is in no other group; correct it"
    if group.centered and tier.name != "tier3":
        return f"centered: {tier.name} has no choices, so no chance; take it out"
    others = [m for m in group.members if m in groups and groups[m].centered != group.centered]
    if others:
        return f"centered: it is {group.centered}, but not so of its member {others[0]}"
    known = [*items, *groups]
    if absent := [member for member in group.members if member not in known]:
        return f"members: {no_such(f'{tier.item} or group', absent[0], known)}"
    kinds = {getattr(items[leaf], "kind", None): leaf for leaf in group_leaves(name, groups)}
    if len(kinds) > 1:
        return (
            f"higher is better for the {tier.head.words} of {kinds['ranked']}, lower for the bits per "
            f"byte of {kinds['gold']}, which has no choices; no mean holds both"
        )
    if "gold" in kinds and (group.centered or group.weigh == "larger"):
        key = "centered" if group.centered else "weigh: larger"
        return f"{key}: {kinds['gold']} has no choices, so no accuracy; take one of them out"
    return None
