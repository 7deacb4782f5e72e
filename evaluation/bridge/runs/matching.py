"""Match the checkpoints of two runs.

By steps, checkpoints of the same step match. By tokens seen, two match if they are each other's nearest
and differ by at most NEAR: runs of different batch sizes rarely save at exactly the same count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.bridge.runs.find import Run, RunCheckpoint
from evaluation.errors import BridgeError
from evaluation.settings.runs import By

NEAR = 0.01
"""Relative difference in tokens up to which two checkpoints match."""

Checkpoints = Sequence[RunCheckpoint]


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
    """Return the stages of two runs that are compared: those of equal names, or the only one of each run."""
    common = [(name, name) for name in ours.stages if name in theirs.stages]
    if not common and len(ours.stages) == len(theirs.stages) == 1:
        return [(next(iter(ours.stages)), next(iter(theirs.stages)))]
    if not common:
        raise BridgeError(
            f"no stage in common: {ours.path} has {', '.join(ours.stages)}, {theirs.path} has "
            f"{', '.join(theirs.stages)}; name the folder of one stage on each side"
        )
    return common


def matches(ours: Checkpoints, theirs: Checkpoints, by: By, where: str) -> list[Match]:
    """Return the checkpoints of two stages that are compared, in ascending steps; at least one pair."""
    if by == "tokens":
        pairs = _by_tokens(ours, theirs, where)
    else:
        other = {checkpoint.step: checkpoint for checkpoint in theirs}
        pairs = [Match(mine, other[mine.step]) for mine in ours if mine.step in other]
    if not pairs:
        sides = " and ".join(
            f"{name} has {_values(side, by)}" for name, side in (("A", ours), ("B", theirs))
        )
        raise BridgeError(
            f"{where}: no checkpoints match by {by}: {sides}; score checkpoints that match, use the "
            "other `--by`, or name the results of two checkpoints"
        )
    return pairs


def _by_tokens(ours: Checkpoints, theirs: Checkpoints, where: str) -> list[Match]:
    for side, label in ((ours, "A"), (theirs, "B")):
        unknown = [checkpoint for checkpoint in side if checkpoint.tokens is None]
        if unknown:
            raise BridgeError(
                f"{where}: {unknown[0].folder}: how many tokens {label} had seen is not known, as its "
                "checkpoint does not record it; compare by steps"
            )
    pairs = [Match(checkpoint, _nearest(checkpoint, theirs)) for checkpoint in ours]
    mutual = [match for match in pairs if _nearest(match.theirs, ours) == match.ours]
    return [match for match in mutual if _apart(match.ours, match.theirs) <= NEAR]


def _nearest(checkpoint: RunCheckpoint, side: Checkpoints) -> RunCheckpoint:
    return min(side, key=lambda other: _apart(checkpoint, other))


def _apart(ours: RunCheckpoint, theirs: RunCheckpoint) -> float:
    counts = ours.tokens or 0, theirs.tokens or 0
    return abs(counts[0] - counts[1]) / max(1, *counts)


def _values(side: Checkpoints, what: By) -> str:
    """Return the first and last step or tokens of checkpoints."""
    values = [checkpoint.step if what == "steps" else checkpoint.tokens for checkpoint in side]
    return f"{values[0]:,}" if len(values) == 1 else f"{values[0]:,} to {values[-1]:,}"
