"""One token more for every row in flight: on a GPU through compiled layers.

A step computes next to nothing in each of its many kernels, so it takes as long as starting them
does. Compiled, a layer has few. What rows attend to is wider with every step and differs from row to
row, so attention is a single operation that the compiler does not look into; all else in a layer has
one shape as long as the same number of rows is in flight, whichever of them are in use.
"""

from collections.abc import Callable, Sequence

import torch
from transformers import PreTrainedModel

from evaluation.errors import ScoringError
from evaluation.scoring.engine.compiled import Compiler, compile_errors, compiled_parts, running
from evaluation.scoring.engine.generation.memory import Reading, Step, attending
from evaluation.scoring.engine.self_check import TOLERANCE, in_float64, tolerance

Forward = Callable[[torch.Tensor, torch.Tensor, Reading | Step | None], torch.Tensor]
"""Last hidden states (B, T, D) of ids and positions (B, T); without a memory by compiled layers."""

Read = Callable[[int], Sequence[int]]
"""All tokens that a row has read, by its number."""

CHECKED = 4
"""Rows that are compared with float64, spread over all."""


class Steps:
    """The steps of up to `rows` rows; without a compiler the layers run as they are.

    The first compiled step is compared with the same one through the layers as they are. In narrow
    types these round as much, so there both are compared with float64.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        forward: Forward,
        windows: Sequence[int | None],
        rows: int,
        compiler: Compiler | None,
    ) -> None:
        self._model, self._forward, self._windows = model, forward, windows
        self._rows = rows
        self._parts = None if compiler is None else compiled_parts(model, compiler)
        self._is_checked = False

    def hidden(
        self, ids: torch.Tensor, positions: torch.Tensor, step: Step, read: Read
    ) -> torch.Tensor:
        """Last hidden states (B, D) of ids at positions, (B,).

        Raises:
            ScoringError: the layers cannot be compiled, or compute something else then.
        """
        if self._parts is None:
            return self._forward(ids[:, None], positions[:, None], step)[:, 0]
        unused = (0, self._rows - len(ids))
        padded = torch.nn.functional.pad(torch.stack([ids, positions]), unused)[:, :, None]
        with compile_errors(), running(self._parts), attending(step):
            hidden = self._forward(padded[0], padded[1], None)[: len(ids), 0]
        if not self._is_checked:
            self._check(hidden, self._forward(ids[:, None], positions[:, None], step)[:, 0], read)
            self._is_checked = True
        return hidden

    def _check(self, found: torch.Tensor, plain: torch.Tensor, read: Read) -> None:
        """Compares hidden states (B, D) of compiled layers and of the layers as they are."""
        difference, allowed = _difference(found, plain), tolerance(self._model)
        if difference > allowed and self._model.dtype not in TOLERANCE:
            rows = sorted({(len(found) - 1) * i // (CHECKED - 1) for i in range(CHECKED)})
            exact = torch.cat([self._exact(read(row)) for row in rows])
            difference = _difference(found[rows], exact)
            allowed = max(allowed, 2 * _difference(plain[rows], exact))
        if difference > allowed:  # False for NaN, which the next token reports
            raise ScoringError(
                f"{type(self._model).__name__} cannot answer: its compiled layers compute something "
                f"else than the layers do, by {difference:.1e} (relative L2, at most {allowed:.1e} in "
                f"{self._model.dtype}); let a `command` of your own answer for it"
            )

    def _exact(self, tokens: Sequence[int]) -> torch.Tensor:
        """The last hidden state (1, D) in float64, of all tokens read at once."""
        ids = torch.tensor([tokens], device=self._model.device)
        positions = torch.arange(len(tokens), device=ids.device)[None]
        with in_float64(self._model):
            reading = Reading([], self._windows, positions)
            return self._forward(ids, positions, reading)[:, -1]


def _difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The relative L2 norm."""
    expected = expected.double()
    return float((found.double() - expected).norm() / expected.norm())


def fixed_rows(rows: int, most: int) -> int:
    """So many rows or a little more, up to `most`: what is compiled for few numbers serves all."""
    return min(most, 1 << (rows - 1).bit_length())
