"""Groups of slices or tasks: weighted means of members, which may be groups, too."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from evaluation.errors import ConfigError
from evaluation.settings.model import Settings
from evaluation.settings.names import Label
from evaluation.settings.tiers import TIERS, TierName
from evaluation.wording import did_you_mean


class Group(Settings):
    """A mean over slices, tasks and other groups."""

    tier: TierName = Field(description="Tier of its members.")
    members: tuple[Label, ...] = Field(
        min_length=1, description="Slices or tasks, or other groups, by name."
    )
    weigh: Literal["members", "leaves", "questions"] = Field(
        "members",
        description="`members`: each member counts once, a group by its own mean; `leaves`: each slice or "
        "task counts once, even if several groups have it; `questions`: each slice or task weighs its "
        "number of questions, prompts or blocks.",
    )

    @property
    def definition(self) -> dict[str, Any]:
        """The settings that decide the mean."""
        return self.model_dump()


Groups = Mapping[str, Group]


def group_leaves(name: str, groups: Groups) -> list[str]:
    """Return the slices or tasks of a group and of the groups in it, each once, in order."""
    leaves: dict[str, None] = {}
    groups = _of_its_tier(groups[name], groups)
    for member in groups[name].members:
        leaves |= dict.fromkeys(group_leaves(member, groups) if member in groups else (member,))
    return list(leaves)


def group_weights(name: str, groups: Groups, questions: Mapping[str, int]) -> dict[str, float]:
    """Return the weight of each slice or task in a group's mean, by its count of `questions`.

    The weights add up to 1.
    """
    group = groups[name]
    groups = _of_its_tier(group, groups)
    if group.weigh != "members":
        leaves = group_leaves(name, groups)
        sizes = [questions[leaf] if group.weigh == "questions" else 1 for leaf in leaves]
        return {leaf: size / sum(sizes) for leaf, size in zip(leaves, sizes, strict=True)}
    weights: dict[str, float] = {}
    for member in group.members:
        inner = group_weights(member, groups, questions) if member in groups else {member: 1.0}
        for leaf, weight in inner.items():
            weights[leaf] = weights.get(leaf, 0.0) + weight / len(group.members)
    return weights


def _of_its_tier(group: Group, groups: Groups) -> Groups:
    """Return the groups of its tier; one of another tier may be named like one of its items."""
    return {name: other for name, other in groups.items() if other.tier == group.tier}


def check_groups(
    origin: str, groups: Groups, items: Mapping[TierName, Mapping[str, object]]
) -> None:
    """Refuse groups whose members, the `items` of each tier, cannot be averaged.

    Raises:
        ConfigError: A group has unknown members, members of two metrics, or contains itself.
    """
    for name, group in groups.items():
        wrong = next(_faults(name, group, groups, items.get(group.tier, {})), None)
        if wrong is not None:
            raise ConfigError(f"{origin}: groups.{name}: {wrong}")


def _faults(name: str, group: Group, groups: Groups, items: Mapping[str, object]) -> Iterator[str]:
    tier = TIERS[group.tier]
    if tier.rates:
        yield f"{tier.name} has rates over all {tier.unit} and no mean of them; take the group out"
    if name in items or name in {getattr(item, "group", None) for item in items.values()}:
        yield f"a {tier.item}, or the `group` of one, has this name, too; rename one of them"
    if len(set(group.members)) < len(group.members):
        yield "a member appears twice; take it out once"
    known = [*items, *_of_its_tier(group, groups)]
    for member in group.members:
        if member not in known:
            hint = did_you_mean(member, [one for one in known if one != name])
            yield f"members: {tier.name} has no {tier.item} or group {member!r}{hint}; correct it"
    if circle := _circle(name, groups):
        yield f"groups hold each other in a circle: {' > '.join(circle)}; take out one member"
    leaves = [leaf for leaf in group_leaves(name, groups) if leaf in items]
    kinds = {getattr(items[leaf], "kind", None): leaf for leaf in leaves}
    if len(kinds) > 1:
        ranked, gold = kinds["ranked"], kinds["gold"]
        yield (
            f"higher is better for the {tier.head.words} of {ranked}, lower for the bits per byte of "
            f"{gold}, which has no choices; no mean holds both, so make a group of each"
        )


def _circle(name: str, groups: Groups, below: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the names of a circle of groups; empty where there is no circle below `name`."""
    if name in below:
        return (*below, name)
    for member in groups[name].members:
        if member in groups and (circle := _circle(member, groups, (*below, name))):
            return circle
    return ()
