"""Refusals: what two results must share before their difference means anything."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.bridge.results import Results
from evaluation.errors import BridgeError

AGAIN = "score both sides again with the same version and settings"


def check_comparable(ours: Results, theirs: Results) -> None:
    """Raises BridgeError unless protocol, tokenizer, sequence length and all data agree."""
    for tier, mine in ours.headers.items():
        other = theirs.headers.get(tier)
        if other is None:
            raise BridgeError(f"{theirs.folder}: has no {tier}, which {ours.folder} has; score it")
        _same("protocol", mine.protocol, other.protocol, mine.path, other.path)
        _same("tokenizer", mine.tokenizer, other.tokenizer, mine.path, other.path)
        lengths = (mine.sequence_length, other.sequence_length)
        _same("sequence length", *lengths, mine.path, other.path)
        settings = [header.content.get("attention") for header in (mine, other)]
        _same("attention", settings[0], settings[1], mine.path, other.path)
    if "tier2" in ours.headers:
        _same_data("slice", ours.slices, theirs.slices, ours, theirs)
    if "tier3" in ours.headers:
        _same_data("task", ours.tasks, theirs.tasks, ours, theirs)
        for name, task in ours.tasks.items():
            what = f"primary metric of {name}"
            _same(what, task.primary, theirs.tasks[name].primary, ours.folder, theirs.folder)
    if ours.probes and theirs.probes:
        _same("prompts", ours.probes.data, theirs.probes.data, ours.folder, theirs.folder)


def _same(what: str, mine: object, other: object, ours: object, theirs: object) -> None:
    if mine != other:
        raise BridgeError(
            f"{what}: {mine!r} in {ours}, but {other!r} in {theirs}; they must not be compared: {AGAIN}"
        )


def _same_data(
    kind: str,
    mine: Mapping[str, Any],
    other: Mapping[str, Any],
    ours: Results,
    theirs: Results,
) -> None:
    for here, there, lacking in ((mine, other, theirs), (other, mine, ours)):
        missing = [name for name in here if name not in there]
        if missing:
            raise BridgeError(
                f"{lacking.folder}: has no {kind} {missing[0]!r}, which the other side has; {AGAIN}"
            )
    for name in mine:
        what = f"data of {kind} {name!r}"
        _same(what, mine[name].data, other[name].data, ours.folder, theirs.folder)


def check_items(
    what: str, mine: Sequence[Any], other: Sequence[Any], ours: Results, theirs: Results
) -> None:
    """Raises BridgeError unless both sides scored the same items in the same order."""
    if list(mine) == list(other):
        return
    lone = next(iter(_lone(mine, other)), None) or next(iter(_lone(other, mine)), None)
    seen = f"{lone} is on one side only" if lone is not None else "their order differs"
    raise BridgeError(
        f"{what}: the items of {ours.folder} ({len(mine)}) are not those of {theirs.folder} "
        f"({len(other)}): {seen}; {AGAIN}"
    )


def _lone(some: Iterable[Any], others: Iterable[Any]) -> list[str]:
    known = set(others)
    return [str(item) for item in some if item not in known]
