"""What a leader tells its followers, and they it: pickled, through their standard streams.

Both ends are processes of one program on one machine. Errors come as their names and sentences.
"""

import pickle
from dataclasses import dataclass
from typing import IO, Any

import torch

from evaluation.checkpoints.format import Checkpoint
from evaluation.settings.computing import Scoring


@dataclass(frozen=True)
class Joining:
    """What a follower is told first; `port` is where the processes of a team meet."""

    rank: int
    ranks: int
    port: int
    patience: float
    scoring: Scoring
    checkpoint: Checkpoint
    device: str


@dataclass(frozen=True)
class Call:
    """A method of the backend, which every process of a team calls with these arguments."""

    method: str
    arguments: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Done:
    """A call has ended well."""


@dataclass(frozen=True)
class Failed:
    """It has not: class of the error, where it is one of this project's, and what it says."""

    kind: str
    sentence: str


class _Pickler(pickle.Pickler):
    """Tensors as arrays: torch does not read its own pickles of uint16, in which tokens are kept."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.from_numpy, (value.numpy(),)
        return NotImplemented


def send(stream: IO[bytes], message: object) -> None:
    _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(message)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """The next message; raises EOFError once the other side has ended."""
    try:
        return pickle.load(stream)
    except (pickle.UnpicklingError, OSError):  # it ended in the middle of one
        raise EOFError from None
