"""Run a model's body over packed rows, with our masks and positions, and its head where it is needed.

Passes are asynchronous: only fetching the scores of a pass waits for a GPU.

Letters: B rows, S tokens of a row, D width.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from transformers import Cache, PreTrainedModel

from evaluation.errors import CompileError, ScoringError
from evaluation.scoring.engine import gpu
from evaluation.scoring.engine.check import SHORT, beyond_windows, scoring_fault
from evaluation.scoring.engine.gpu import Compiler, HostCopy, Shape, shape_of
from evaluation.scoring.engine.head import Head
from evaluation.scoring.engine.masks import (
    BLOCK,
    Mask,
    block_mask,
    dense_mask,
    layer_windows,
)
from evaluation.scoring.engine.tries import Batch, Ints, PackedRow, collate, group_rows

SMALLEST = 256
"""Least tokens of a forward pass; if these exceed the memory, scoring fails."""

INSTEAD = "score it by a `command` of your own"

_MOVED = ("tokens", "depth", "end", "query", "pair", "target")
"""What a batch holds for the device."""


class Engine:
    """A model that is ready to score, in fixed shapes if its layers are compiled.

    It is compared with the model's own pass: at once, and before the first pass beyond a window; if
    compiled, before the first pass of each shape and kind of mask. If they differ, it raises ScoringError.
    Other code may use the model between passes.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        row_tokens: int,
        device: str,
        compiler: Compiler | None = None,
    ) -> None:
        self.model, self.device, self.row_tokens = model, torch.device(device), row_tokens
        self.compiler = compiler
        self.head, self.windows = Head(model, compiler), layer_windows(model.config)
        self.vocab_size = model.get_input_embeddings().weight.shape[0]
        self.tokens_processed = 0
        self.decodable: set[int] = set()
        """Lengths of prompts up to which decoding was compared with the model's own pass."""
        self._checked: dict[bool, set[Shape]] = {False: set(), True: set()}  # tries, text
        if compiler is None:
            self.ensure_checked([SHORT], is_text=False)

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        """Have the model use our masks and compiled layers while the block lasts."""
        with (
            torch.inference_mode(),
            gpu.attention_by(self.model, gpu.ATTENTION),
            gpu.compiled_layers(self.model, self.compiler),
        ):
            yield

    def groups(self, lengths: Sequence[int], *, is_text: bool) -> Iterator[list[int]]:
        """Yield indices of the rows that run together, the longest rows first."""
        if self.compiler is None:
            yield from group_rows(lengths, self.row_tokens)
            return
        order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        shapes = groupby(order, lambda i: shape_of(lengths[i], self.row_tokens, is_text=is_text))
        for shape, members in shapes:
            group = list(members)
            yield from (group[at : at + shape.rows] for at in range(0, len(group), shape.rows))

    def collate(self, rows: Sequence[PackedRow], *, is_text: bool) -> Batch:
        """Make a batch of rows, padded to a shape that this engine runs."""
        longest = max(len(row.tokens) for row in rows)
        if self.compiler is None:
            batch = collate(rows, longest)
        else:
            shape = shape_of(longest, self.row_tokens, is_text=is_text)
            batch = collate(rows, shape.length, count=shape.rows, is_causal=is_text)
        if self.device.type != "cuda":
            return batch
        return batch._replace(**{name: getattr(batch, name).pin_memory() for name in _MOVED})

    def capacity(self, shared: Ints) -> Ints:
        """Return the most tokens of a row whose inputs share a prefix of so many tokens.

        A compiled engine fills a pass, or more if the prefix needs it. Otherwise attention is dense: a
        row of S tokens costs a S + b S^2 for S - `shared` new tokens, and a new token costs least at
        S = shared + sqrt(shared^2 + shared a / b).
        """
        if self.compiler is not None:
            return np.maximum(self.row_tokens, shared + BLOCK)
        # About 12 D^2 multiply-adds of a layer for a token, and 2 D for a pair of tokens.
        ratio = 6 * self.model.config.get_text_config().hidden_size
        most: Ints = (shared + np.sqrt(shared**2 + shared * ratio)).astype(np.int64)
        return most

    def hidden(self, batch: Batch, cache: Cache | None = None) -> torch.Tensor:
        """Return the last hidden states (B, S, D) of a batch."""
        tokens, depth, end = (
            part.to(self.device, non_blocking=True)
            for part in (batch.tokens, batch.depth, batch.end)
        )
        make = dense_mask if self.compiler is None else block_mask

        def mask(window: int | None) -> Mask:
            if batch.is_causal and (window is None or depth.shape[1] <= window):
                return None  # causal kernels need no mask
            return make(depth, end, window)

        return self.body(tokens, depth, mask, cache)

    def body(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        mask: Callable[[int | None], Mask],
        cache: Cache | None,
    ) -> torch.Tensor:
        """Run the model's body with a mask for each window of its layers."""
        windows = self.windows
        masks: Any = (
            {kind: mask(size) for kind, size in windows.items()}
            if isinstance(windows, dict)
            else mask(windows)
        )
        given: dict[str, Any] = {} if cache is None else {"past_key_values": cache}
        output = self.model.base_model(
            input_ids=tokens,
            attention_mask=masks,
            position_ids=positions,
            use_cache=cache is not None,
            **given,
        )
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    def run(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probability of each pair of a batch, and whether it is greedy; within `prepared`."""
        hidden = self.hidden(batch)
        query = batch.query.to(hidden.device, non_blocking=True)
        needed = hidden.flatten(0, 1).index_select(0, query)
        return self.head.score(needed, batch.pair, batch.target)

    def launch(self, batch: Batch) -> HostCopy:
        """Begin to score the pairs of a batch; their log-probabilities are on their way to the host."""
        logprob, is_greedy = self.run(batch)
        self.tokens_processed += sum(len(row.tokens) for row in batch.rows)
        return HostCopy(logprob.double(), is_greedy)

    def ensure_checked(self, lengths: Sequence[int], *, is_text: bool) -> None:
        """Compare the shapes in which rows of such lengths run with the model's own pass, each once."""
        if self.compiler is None:
            shapes = {Shape(1, max(SHORT, beyond_windows(self.model, max(lengths))))}
            is_text = False
        else:
            shapes = {shape_of(length, self.row_tokens, is_text=is_text) for length in lengths}
        for shape in shapes - self._checked[is_text]:
            fault = scoring_fault(self.model, self._run_prepared, shape, is_causal=is_text)
            name = type(self.model).__name__
            if fault and self.compiler is not None:
                raise CompileError(f"{name}, compiled, cannot be scored: {fault}")
            if fault:
                raise ScoringError(f"{name} cannot be scored: {fault}; {INSTEAD}")
            self._checked[is_text].add(shape)

    def _run_prepared(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        with self.prepared():
            return self.run(batch)
