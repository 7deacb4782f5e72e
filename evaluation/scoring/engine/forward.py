"""Run forward passes of a model over batches, after a self-check of each shape and kind of mask.

Passes are asynchronous: only fetching the scores of a pass waits for a GPU.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import torch
from transformers import PreTrainedModel

from evaluation.errors import NotEnoughMemory, ScoringError
from evaluation.scoring.engine.batches import (
    Batch,
    Shape,
    collate,
    group_by_shape,
    group_rows,
    shape_of,
)
from evaluation.scoring.engine.compiled import Compiler
from evaluation.scoring.engine.head import PairScores, Pending
from evaluation.scoring.engine.masks import BLOCK
from evaluation.scoring.engine.packed_rows import PackedRow
from evaluation.scoring.engine.prepared import PreparedModel
from evaluation.scoring.engine.self_check import SHORT, beyond_windows, check_eager, check_shape
from evaluation.scoring.engine.tries import Ints


class Engine(PreparedModel):
    """A model that is ready to score batches, in fixed shapes if it is compiled.

    If the engine does not reproduce the model's own scores, it raises a ScoringError. An uncompiled
    engine checks this at once, and before the first pass beyond a window; a compiled one, before the
    first pass of each shape and kind of mask.

    Args:
        model: A loaded model, which other code may use between passes.
        row_tokens: Row budget of a forward pass, in tokens.
        device: Device of the model: `cpu` or `cuda`.
        compiler: Backend of `torch.compile` for its layers; None: uncompiled.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        row_tokens: int,
        device: str,
        compiler: Compiler | None = None,
    ) -> None:
        super().__init__(model, device=device, compiler=compiler)
        self.row_tokens = row_tokens
        self.longest = longest_position(model)
        self.tokens_processed = 0
        self._reproduced: set[tuple[Shape, bool]] = set()
        self._reproduced_to = SHORT
        if not self.is_compiled:
            check_eager(self)

    def groups(self, lengths: Sequence[int], *, is_text: bool) -> Iterator[list[int]]:
        """Return the groups of rows that run together, the longest rows first.

        Returns:
            Indices into `lengths`, for one forward pass after the other.
        """
        if not self.is_compiled:
            return group_rows(lengths, self.row_tokens)
        return group_by_shape(lengths, self.row_tokens, is_text=is_text)

    def collate(self, rows: Sequence[PackedRow], *, is_text: bool) -> Batch:
        """Make a batch of rows, padded to a shape that this engine runs."""
        longest = max(map(len, rows))
        if not self.is_compiled:
            return collate(rows, longest)
        shape = shape_of(longest, self.row_tokens, is_text=is_text)
        batch = collate(rows, shape.length, count=shape.rows, is_trie=not is_text)
        return batch.pinned if self.on_gpu else batch

    def row_capacity(self, shared: Ints, shortest: int = 0) -> Ints:
        """Return the most tokens of a row whose inputs share a prefix.

        A compiled engine fills a forward pass, or more if the prefix needs it. Otherwise attention
        is dense: a row of S tokens costs a S + b S^2 for S - `shared` new tokens. The cost of a new
        token is least at S = shared + sqrt(shared^2 + shared a / b), which is raised to `shortest`.

        Args:
            shared: Tokens of each shared prefix.
            shortest: Least capacity of a row with dense attention.
        """
        if self.is_compiled:
            return np.maximum(self.row_tokens, shared + BLOCK)
        per_token, per_pair = self.costs
        best = shared + np.sqrt(shared**2 + shared * per_token / per_pair)
        return np.maximum(shortest, best.astype(np.int64))

    @cached_property
    def costs(self) -> tuple[float, float]:
        """Count the multiply-adds of the model's body for a token, and for a pair of tokens in a row."""
        body = sum(weight.numel() for weight in self.model.base_model.parameters())
        body -= self.model.get_input_embeddings().weight.numel()
        config = self.model.config.get_text_config()
        # Where it differs between layers, the configuration's attribute raises an error.
        width = config.to_dict().get("head_dim") or config.hidden_size // config.num_attention_heads
        return float(body), float(2 * config.num_hidden_layers * config.num_attention_heads * width)

    def score(self, batch: Batch) -> PairScores:
        """Score the pairs of a batch and wait for them; raise like `launch`."""
        return self.launch(batch).scores()

    def launch(self, batch: Batch) -> Pending:
        """Begin to score the pairs of a batch; the scores are still being copied from the device.

        Raises:
            ScoringError: When a token has no embedding, or the layers cannot be compiled.
            NotEnoughMemory: When a GPU's memory is exhausted.
        """
        self._check(batch)
        try:
            self._check_reproduced(Shape(*batch.tokens.shape), batch.is_causal)
            pending = self.begin(batch)
        except (torch.OutOfMemoryError, NotEnoughMemory):
            rows, length = batch.tokens.shape
            raise NotEnoughMemory(
                f"the GPU does not have enough memory for {rows} rows of {length} tokens; lower "
                f"scoring.row_tokens (now {self.row_tokens})"
            ) from None
        self.tokens_processed += batch.real_tokens
        return pending

    def _check_reproduced(self, shape: Shape, is_causal: bool) -> None:
        if not self.is_compiled:
            beyond = beyond_windows(self.model, shape.length)
            if beyond > self._reproduced_to:
                with self.as_it_was():
                    check_eager(self, beyond)
                self._reproduced_to = beyond
        elif (shape, is_causal) not in self._reproduced:
            with self.as_it_was():
                check_shape(self, shape, is_causal=is_causal)
            self._reproduced.add((shape, is_causal))

    def _check(self, batch: Batch) -> None:
        if batch.highest >= self.vocab_size:
            raise ScoringError(
                f"a request has token {batch.highest}, but the model's embedding has only "
                f"{self.vocab_size} rows; the tokens come from another tokenizer"
            )
        if batch.deepest >= self.longest:
            raise ScoringError(
                f"a request has more than {self.longest} tokens; from there on this model's rotary "
                "embedding depends on the other rows of the batch; lower the sequence length"
            )


def longest_position(model: PreTrainedModel) -> float:
    """Return the tokens up to which a rotary embedding does not depend on the batch; mostly infinite."""
    config = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") not in ("dynamic", "longrope"):
        return math.inf
    longest = rope.get("original_max_position_embeddings") or config.max_position_embeddings
    return float(longest)
