"""Match the checkpoints of two runs.

By steps, checkpoints of the same step match. By tokens seen, two match if they are each other's nearest
and differ by at most NEAR: runs of different batch sizes rarely save at exactly the same count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.errors import BridgeError
from evaluation.runs.find import Run, RunCheckpoint
from evaluation.settings.runs import By

NEAR = 0.01
"""Relative difference in tokens up to which two checkpoints match."""

Checkpoints = Sequence[RunCheckpoint]


@dataclass(frozen=True)
class Matching:
    """Which checkpoints match: all, those `at` a step or number of tokens, or the `last` ones."""

    by: By = "steps"
    at: int | None = None
    which: Literal["all", "last"] = "all"


@dataclass(frozen=True)
class Match:
    """Two checkpoints that are compared."""

    ours: RunCheckpoint
    theirs: RunCheckpoint

    @property
    def label(self) -> str:
        """Its name in messages, by its steps."""
        return match_label(self.ours.step, self.theirs.step)


def match_label(ours: int | None, theirs: int | None) -> str:
    """Return the name of two matched checkpoints: `step 10`, or `step 10 against step 20`."""
    return f"step {ours}" if ours == theirs else f"step {ours} against step {theirs}"


def paired_stages(ours: Run, theirs: Run) -> list[tuple[str, str]]:
    """Return the stages of two runs that are compared: those of equal names, or the only one of each run.

    Raises:
        BridgeError: The runs have no stage in common.
    """
    common = [(name, name) for name in ours.stages if name in theirs.stages]
    if not common and len(ours.stages) == len(theirs.stages) == 1:
        return [(next(iter(ours.stages)), next(iter(theirs.stages)))]
    if not common:
        raise BridgeError(
            f"no stage in common: {ours.path} has {', '.join(ours.stages)}, {theirs.path} has "
            f"{', '.join(theirs.stages)}; name the folder of one stage on each side"
        )
    return common


def matches(ours: Checkpoints, theirs: Checkpoints, how: Matching, where: str) -> list[Match]:
    """Return the checkpoints of two stages that are compared, in ascending steps; at least one pair.

    Args:
        where: Name of the stage, for messages.

    Raises:
        BridgeError: No checkpoints match, or their tokens are not known.
    """
    if how.which == "last":
        return [Match(ours[-1], theirs[-1])]
    if how.by == "tokens":
        return _by_tokens(ours, theirs, how, where)
    other = {checkpoint.step: checkpoint for checkpoint in theirs}
    pairs = [
        Match(checkpoint, other[checkpoint.step]) for checkpoint in ours if checkpoint.step in other
    ]
    if how.at is not None:
        pairs = [match for match in pairs if match.ours.step == how.at]
    if not pairs:
        wanted = "no step is in both" if how.at is None else f"step {how.at} is not in both"
        raise BridgeError(
            f"{where}: {wanted}: A has {_some(ours, 'steps')}, B has {_some(theirs, 'steps')}; score "
            f"the same steps, or compare by tokens seen{_the_last(how)}"
        )
    return pairs


def _by_tokens(ours: Checkpoints, theirs: Checkpoints, how: Matching, where: str) -> list[Match]:
    for side, label in ((ours, "A"), (theirs, "B")):
        unknown = [checkpoint for checkpoint in side if checkpoint.tokens is None]
        if unknown:
            raise BridgeError(
                f"{where}: {unknown[0].folder}: how many tokens {label} had seen is not known, as its "
                "checkpoint does not record it; compare by steps"
            )
    if how.at is not None:
        found = [Match(_nearest(how.at, ours), _nearest(how.at, theirs))]
        found = [m for m in found if all(_is_near(how.at, one) for one in (m.ours, m.theirs))]
    else:
        pairs = [Match(checkpoint, _nearest(checkpoint.tokens or 0, theirs)) for checkpoint in ours]
        found = [m for m in pairs if _nearest(m.theirs.tokens or 0, ours) == m.ours]
        found = [m for m in found if _is_near(m.ours.tokens or 0, m.theirs)]
    if not found:
        wanted = "no checkpoints" if how.at is None else f"no checkpoints at {how.at:,} tokens"
        raise BridgeError(
            f"{where}: {wanted} within {NEAR:.0%} of one another: A has {_some(ours, 'tokens')}, B has "
            f"{_some(theirs, 'tokens')}; score checkpoints that match, or compare by steps"
            f"{_the_last(how)}"
        )
    return found


def _nearest(tokens: int, side: Checkpoints) -> RunCheckpoint:
    return min(side, key=lambda one: abs((one.tokens or 0) - tokens))


def _is_near(tokens: int, run_checkpoint: RunCheckpoint) -> bool:
    there = run_checkpoint.tokens or 0
    return abs(there - tokens) <= NEAR * max(there, tokens)


def _the_last(how: Matching) -> str:
    return "" if how.at is not None else " or the last ones (`--last`)"


def _some(side: Checkpoints, what: By) -> str:
    """Return the steps or tokens of checkpoints in words; of many only the first and last."""
    values = [checkpoint.step if what == "steps" else checkpoint.tokens for checkpoint in side]
    words = [f"{value:,}" if what == "tokens" else str(value) for value in values]
    shown = words if len(words) < 7 else [*words[:3], "…", *words[-2:]]
    return f"{'step' if what == 'steps' else 'tokens'} {', '.join(shown)}"
