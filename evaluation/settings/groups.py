"""Groups of slices or tasks: means of means, by what each member weighs."""

from collections.abc import Iterator, Mapping
from typing import Literal

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
        description="`members`: each member counts once, a group by its own mean; `leaves`: each slice or task counts once, in whatever group; `questions`: each by its number of questions, prompts or blocks.",
    )


Groups = Mapping[str, Group]


def group_leaves(name: str, groups: Groups) -> list[str]:
    """Return the slices or tasks of a group and of the groups in it.

    Args:
        name: Name of a group.
        groups: All groups of the suite, by name.

    Returns:
        Names of slices or tasks, each once, in the order of the members.
    """
    found: dict[str, None] = {}
    for member in groups[name].members:
        found |= dict.fromkeys(group_leaves(member, groups) if member in groups else (member,))
    return list(found)


def group_weights(name: str, groups: Groups, questions: Mapping[str, int]) -> dict[str, float]:
    """Return what each slice or task weighs in the mean of a group.

    Args:
        name: Name of a group.
        groups: All groups of the suite, by name.
        questions: Number of questions, prompts or blocks of each slice or task.

    Returns:
        The weights by slice or task; they add up to 1.
    """
    group = groups[name]
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


def check_groups(
    origin: str, groups: Groups, items: Mapping[TierName, Mapping[str, object]]
) -> None:
    """Refuse a group that is no mean of one metric.

    Args:
        origin: Where the groups come from, for messages.
        groups: All groups of the suite, by name.
        items: The slices, tasks and prompts of each tier, by name.

    Raises:
        ConfigError: When a group has unknown members, members of two metrics, or itself.
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
        yield f"a {tier.item}, or the `group` of one, is called so too; rename one of them"
    if len(set(group.members)) < len(group.members):
        yield "a member is there twice; take it out once"
    known = [*items, *(one for one, other in groups.items() if other.tier == group.tier)]
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
    """Return the names from a group to itself; nothing where its members lead to leaves alone."""
    if name in below:
        return (*below, name)
    for member in groups[name].members:
        if member in groups and (found := _circle(member, groups, (*below, name))):
            return found
    return ()
