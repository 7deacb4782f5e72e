"""One consistent view of the disk: the states of caches and checkpoints, each read once."""

from collections.abc import Iterable
from pathlib import Path

from evaluation.checkpoints.state import State, checkpoint_state, checkpoint_states
from evaluation.dependencies.caches import CacheStates


class View:
    """What there is on disk."""

    def __init__(self) -> None:
        self.caches = CacheStates()
        self._states: dict[Path, State] = {}

    def look_at(self, checkpoints: Iterable[Path]) -> None:
        """Read the states of many checkpoints at once, for later calls about each of them."""
        self._states |= checkpoint_states(checkpoints)

    def state(self, checkpoint: Path) -> State:
        """Return the state of a checkpoint's files; empty if it is deleted."""
        if checkpoint not in self._states:
            self._states[checkpoint] = checkpoint_state(checkpoint)
        return self._states[checkpoint]
