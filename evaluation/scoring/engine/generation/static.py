"""Decode by a step of fixed buffers, which a GPU replays as one CUDA graph: one launch for all layers.

A row keeps its place, and its slot has all of its prompt: prefixes that others share are copied. So the
step depends only on the numbers of rows and columns, which are rounded up to a few. Each token goes into
the next step on the device; the host reads it while that step runs. So an answer that has ended is
decoded for one more step, to no effect.

Letters: B rows, V vocabulary.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from evaluation.scoring.engine.busy import working
from evaluation.scoring.engine.generation.generate import DecodingBatch
from evaluation.scoring.engine.generation.kv_cache import WIDEN, DecodingStep, Prefix
from evaluation.scoring.engine.generation.partial_answers import (
    PartialAnswer,
    next_tokens,
    rules_of,
)
from evaluation.scoring.engine.generation.prompts import PrefilledPrompt
from evaluation.scoring.engine.generation.sampling import Rules
from evaluation.scoring.engine.head import HostCopy

log = logging.getLogger(__name__)


class StaticBatch(DecodingBatch):
    """A batch whose rows keep their places; the layers of its model are on one device."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._pending: deque[tuple[Sequence[PartialAnswer], HostCopy]] = deque()
        self._graphs = Graphs()
        self._ruled: list[PartialAnswer] = []
        self._rules: Rules | None = None

    def _open(self, example: Prefix) -> None:
        if not self._slots.keys:
            super()._open(example)
            self._ids, self._places = torch.zeros(
                2, self.most, dtype=torch.long, device=self._device
            )

    def _begin(self, prompt: PrefilledPrompt, count: int) -> None:
        rows = [
            PartialAnswer.of(prompt, prompt.samples.pop(), self._width, shares=False)
            for _ in range(count)
        ]
        rules = rules_of(rows, self._head.device)
        first = self._take(rows, prompt.logits.expand(count, -1), rules)
        places = torch.tensor([self._give_slot(row) for row in rows], device=self._device)
        self._ids[places] = first
        self._places[places] = rows[0].used

    def _move(self, origin: int, target: int, used: int) -> None:
        super()._move(origin, target, used)
        for buffer in (self._ids, self._places):
            buffer[target] = buffer[origin]

    def _advance(self) -> None:
        """Begin one more token of every row; read those of the step before."""
        count, needed = len(self._rows), self._widen()
        rows = min(1 << (count - 1).bit_length(), self.most)
        logits = self._computed(rows, -(-needed // WIDEN) * WIDEN)[:count]
        if self._ruled != self._rows:
            self._ruled = list(self._rows)
            self._rules = rules_of(self._ruled, self._head.device)
        self._ids[:count] = self._take(self._ruled, logits, self._rules)
        self._places[:count] += 1
        for row in self._rows:
            row.used += 1
        while len(self._pending) > 1:
            self._read()
        self._ended = [place for place, row in enumerate(self._rows) if row.stop_reason]

    def _take(
        self, rows: Sequence[PartialAnswer], logits: torch.Tensor, rules: Rules | None
    ) -> torch.Tensor:
        """Choose tokens, and begin to copy them to the host; return ids that the next step can read."""
        chosen = next_tokens(rows, logits, rules, self._width)
        self._pending.append((rows, HostCopy(chosen)))
        return chosen.clamp(min=0).to(self._device)  # -1 stands for NaN

    def _read(self) -> None:
        rows, copy = self._pending.popleft()
        for row, token in zip(rows, copy.wait()[0].tolist(), strict=True):
            if row.stop_reason is None:
                row.take(token)
                self._has_ended(row)

    @working
    def _computed(self, rows: int, width: int) -> torch.Tensor:
        shape = StepShape(rows, width, self._slots.version)
        return self._graphs.run(shape, lambda: self._step(rows, width))

    def _step(self, rows: int, width: int) -> torch.Tensor:
        """Return logits (B, V) of the rows' tokens, from buffers alone."""
        ids, places = self._ids[:rows], self._places[:rows]
        columns = torch.arange(width, device=self._device).expand(rows, -1)
        step = DecodingStep(self._slots, (), columns, places, places, self._windows)
        hidden = self._hidden(ids[:, None], places[:, None], step)[:, 0]
        return self._head.logits(hidden)[:, : self._vocabulary]


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

    def __init__(self) -> None:
        self._captured: dict[StepShape, Captured | None] = {}
        self._can_capture = True

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
            reason = str(error).partition("\n")[0]
            log.warning("decoding steps cannot be captured (%s); each is launched", reason)
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
