"""Capture decoding steps as CUDA graphs, and replay them: one launch for all layers.

A step depends only on the memory of the slots, and on the numbers of rows and columns.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

import torch

from evaluation.wording import reason_of

log = logging.getLogger(__name__)


class StepShape(NamedTuple):
    """The integers that shape a step; its memory has a version, as it is replaced now and then."""

    rows: int
    width: int
    version: int


class Graphs:
    """Captured computations, by what shapes them.

    The second time that a shape occurs, its computation is captured; from then on it is replayed. A graph
    reads and writes the memory that it was captured with, so all are forgotten when that is replaced.
    """

    def __init__(self, can_capture: bool) -> None:
        self._captured: dict[StepShape, Captured | None] = {}
        self._can_capture = can_capture

    def run(self, shape: StepShape, compute: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Compute from fixed buffers, or replay; the next run overwrites the result."""
        if any(other.version != shape.version for other in self._captured):
            self._captured = {}
        if shape in self._captured and self._captured[shape] is None and self._can_capture:
            self._captured[shape] = self._capture(compute)
        captured = self._captured.setdefault(shape, None)
        if captured is None:
            return compute()
        replay, result = captured
        replay()
        return result

    def _capture(self, compute: Callable[[], torch.Tensor]) -> "Captured | None":
        try:
            return capture(compute)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            log.warning(
                "decoding steps cannot be captured (%s); each is launched", reason_of(error)
            )
            self._can_capture = False
            return None


def capture(compute: Callable[[], torch.Tensor]) -> "Captured | None":
    """Capture a computation as a CUDA graph; return None without a GPU."""
    if not torch.cuda.is_available():
        return None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compute()
    return graph.replay, result


Captured = tuple[Callable[[], None], torch.Tensor]
"""What replays a computation, and the tensor that this writes."""
