"""Groups of slices or tasks: weighted means of members, which may be groups, too."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from pydantic import Field

from evaluation.errors import ConfigError
from evaluation.settings.model import Settings
from evaluation.settings.names import Label
from evaluation.settings.tiers import TIERS, TierName
from evaluation.wording import did_you_mean


class Group(Settings):
    """A mean over slices, tasks and other groups."""

    tier: TierName = Field(
        description="Tier of its members; if they come from several, the tier it is shown in."
    )
    members: tuple[Label, ...] = Field(
        min_length=1, description="Slices or tasks, or other groups, by name."
    )
    also: tuple[TierName, ...] = Field(
        (),
        description="Other tiers that members come from: `[tier3]` in a group of tier5 averages accuracies and pass rates.",
    )
    greedy: tuple[Label, ...] = Field(
        (), description="With `also`: tasks without choices, whose greedy rates the mean counts."
    )
    weigh: Literal["members", "leaves", "questions"] = Field(
        "members",
        description="`members`: each member counts once, a group by its own mean; `leaves`: each slice or task counts once, even if several groups have it; `questions`: each slice or task weighs its number of questions, prompts or blocks.",
    )

    @property
    def tiers(self) -> tuple[TierName, ...]:
        """The tiers that members come from, its own first."""
        return (self.tier, *self.also)

    @property
    def definition(self) -> dict[str, Any]:
        """The settings that decide the mean."""
        return {key: value for key, value in self.model_dump().items() if value != ()}


Groups = Mapping[str, Group]


def group_leaves(name: str, groups: Groups) -> list[str]:
    """Return the slices or tasks of a group and of the groups in it, each once, in order."""
    leaves: dict[str, None] = {}
    groups = _of_its_tiers(groups[name], groups)
    for member in groups[name].members:
        leaves |= dict.fromkeys(group_leaves(member, groups) if member in groups else (member,))
    return list(leaves)


def group_weights(name: str, groups: Groups, questions: Mapping[str, int]) -> dict[str, float]:
    """Return the weight of each slice or task in a group's mean, by its count of `questions`.

    The weights add up to 1.
    """
    group = groups[name]
    groups = _of_its_tiers(group, groups)
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


def _of_its_tiers(group: Group, groups: Groups) -> Groups:
    """Return the groups of its tiers; a group of another tier may be named like one of its items."""
    return {name: other for name, other in groups.items() if other.tier in group.tiers}


def check_groups(
    origin: str, groups: Groups, items: Mapping[TierName, Mapping[str, object]]
) -> None:
    """Refuse groups whose members, the `items` of each tier, cannot be averaged.

    Raises:
        ConfigError: A group has unknown members, members of two metrics, or contains itself.
    """
    for name, group in groups.items():
        own = [items.get(tier, {}) for tier in group.tiers]
        faults = chain(_faults_of_tiers(group), _faults(name, group, groups, own))
        wrong = next(faults, None)
        if wrong is not None:
            raise ConfigError(f"{origin}: groups.{name}: {wrong}")


def _faults_of_tiers(group: Group) -> Iterator[str]:
    """Yield reasons why the tiers of a group have no common mean."""
    if not group.also:
        if group.greedy:
            yield "greedy: it is for members from several tiers; add `also`, or take it out"
        return
    for tier in map(TIERS.__getitem__, group.tiers):
        if tier.headline not in tier.counted:
            yield (
                f"also: no mean over tiers holds the {tier.head.words} of {tier.name}, as it is no "
                "mean of fractions of which higher is better; take the tier out"
            )
    in_order = [name for name in TIERS if name in group.tiers]
    if [*group.also, group.tier] != in_order:
        yield f"also: name each tier once, in order, and the last as `tier`: {', '.join(in_order)}"
    if group.weigh == "questions":
        yield "weigh: questions and prompts of several tiers are not of one kind; set `leaves`"


def _faults(
    name: str, group: Group, groups: Groups, every: Sequence[Mapping[str, object]]
) -> Iterator[str]:
    tier, items = TIERS[group.tier], {key: item for own in every for key, item in own.items()}
    if tier.rates:
        yield f"{tier.name} has rates over all {tier.unit} and no mean of them; take the group out"
    if name in items or name in {getattr(item, "group", None) for item in items.values()}:
        yield f"a {tier.item}, or the `group` of one, has this name, too; rename one of them"
    if len(set(group.members)) < len(group.members):
        yield "a member appears twice; take it out once"
    known = [*items, *(key for key, other in groups.items() if _may_hold(group, other))]
    for member in group.members:
        if member not in known:
            hint = did_you_mean(member, [one for one in known if one != name])
            yield f"members: {tier.name} has no {tier.item} or group {member!r}{hint}; correct it"
    if circle := _circle(name, groups):
        yield f"groups hold each other in a circle: {' > '.join(circle)}; take out one member"
    leaves = [leaf for leaf in group_leaves(name, groups) if leaf in items]
    kinds = {getattr(items[leaf], "kind", None): leaf for leaf in leaves}
    if group.also:
        yield from _faults_of_leaves(group, leaves, every)
    elif len(kinds) > 1:
        ranked, gold = kinds["ranked"], kinds["gold"]
        yield (
            f"higher is better for the {tier.head.words} of {ranked}, lower for the bits per byte of "
            f"{gold}, which has no choices; no mean holds both, so make a group of each"
        )


def _may_hold(group: Group, other: Group) -> bool:
    return (not other.also and other.tier in group.tiers) or other is group


def _faults_of_leaves(
    group: Group, leaves: Sequence[str], every: Sequence[Mapping[str, object]]
) -> Iterator[str]:
    """Yield reasons why leaves have no mean over tiers; `every` has the items of each tier."""
    items = {leaf: [own[leaf] for own in every if leaf in own] for leaf in leaves}
    if twice := [leaf for leaf, entries in items.items() if len(entries) > 1]:
        yield f"members: {twice[0]!r} is in two of its tiers; rename one of them"
    gold = [leaf for leaf, entries in items.items() if getattr(entries[0], "kind", None) == "gold"]
    if lower := [leaf for leaf in gold if leaf not in group.greedy]:
        yield (
            f"lower is better for the bits per byte of {lower[0]}, which has no choices, and higher for "
            f"the others; add it to `greedy`, if its greedy rate is meant, or take it out"
        )
    if other := [name for name in group.greedy if name not in gold]:
        yield f"greedy: {other[0]!r} is not a member without choices; take it out"


def _circle(name: str, groups: Groups, below: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the names of a circle of groups; empty where there is no circle below `name`."""
    if name in below:
        return (*below, name)
    for member in groups[name].members:
        if member in groups and (circle := _circle(member, groups, (*below, name))):
            return circle
    return ()
