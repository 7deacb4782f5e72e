"""Forward passes of a model over batches, each way of running it checked before its first scores.

Nothing waits for a GPU but who asks for a pass's scores.
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
    """A model ready to score batches, in fixed shapes where it is compiled.

    A model whose scores this way of running it does not reproduce is refused with a ScoringError:
    at once and before the first pass beyond a window, or compiled, before the first of each shape
    and kind of mask.

    Args:
        model: A loaded model, which others may use between passes.
        row_tokens: Row budget of a forward pass, in tokens.
        device: Where the model's first layer is: `cpu` or `cuda`.
        compiler: Backend of `torch.compile` for its layers; None runs them plainly.
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
        """Return which rows run together, the longest first.

        Args:
            lengths: Tokens of each row.
            is_text: Whether rows are blocks of text.

        Returns:
            Indices into `lengths`, of one forward pass after the other.
        """
        if not self.is_compiled:
            return group_rows(lengths, self.row_tokens)
        return group_by_shape(lengths, self.row_tokens, is_text=is_text)

    def collate(self, rows: Sequence[PackedRow], *, is_text: bool) -> Batch:
        """Lay rows side by side, padded to what this engine runs.

        Args:
            rows: Packed rows of one group.
            is_text: Whether rows are blocks of text.

        Returns:
            The batch, on the host.
        """
        longest = max(map(len, rows))
        if not self.is_compiled:
            return collate(rows, longest)
        shape = shape_of(longest, self.row_tokens, is_text=is_text)
        batch = collate(rows, shape.length, count=shape.rows, is_trie=not is_text)
        return batch.pinned if self.on_gpu else batch

    def row_capacity(self, shared: Ints, shortest: int = 0) -> Ints:
        """Return how many tokens rows hold whose inputs share a prefix.

        Compiled, a full forward pass, or as much as the prefix needs. Else attention is dense: a
        row of S tokens costs a S + b S^2 for S - `shared` tokens that are new, least per new token
        where S = shared + sqrt(shared^2 + shared a / b); but no less than `shortest`.

        Args:
            shared: Tokens of each shared prefix.
            shortest: Tokens that any row may hold where attention is dense.

        Returns:
            Tokens for each prefix, of the shape of `shared`.
        """
        if self.is_compiled:
            return np.maximum(self.row_tokens, shared + BLOCK)
        per_token, per_pair = self.costs
        best = shared + np.sqrt(shared**2 + shared * per_token / per_pair)
        return np.maximum(shortest, best.astype(np.int64))

    @cached_property
    def costs(self) -> tuple[float, float]:
        """Count what the body of the model computes.

        Returns:
            Multiply-adds for each token, and for each pair of tokens in a row.
        """
        body = sum(weight.numel() for weight in self.model.base_model.parameters())
        body -= self.model.get_input_embeddings().weight.numel()
        config = self.model.config
        width = (
            getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        )
        return float(body), float(2 * config.num_hidden_layers * config.num_attention_heads * width)

    def score(self, batch: Batch) -> PairScores:
        """Score the pairs of a batch and wait for them; raise like `launch`.

        Args:
            batch: What `collate` made.

        Returns:
            Scores in the order of the batch's rows.
        """
        return self.launch(batch).scores()

    def launch(self, batch: Batch) -> Pending:
        """Begin to score the pairs of a batch.

        Args:
            batch: What `collate` made.

        Returns:
            The scores, on their way from the device.

        Raises:
            ScoringError: When a token has no embedding, or the layers cannot be compiled.
            NotEnoughMemory: When a GPU has too little left.
        """
        self._check(batch)
        try:
            self._check_reproduced(Shape(*batch.tokens.shape), batch.is_causal)
            pending = self.begin(batch)
        except (torch.OutOfMemoryError, NotEnoughMemory):
            rows, length = batch.tokens.shape
            raise NotEnoughMemory(
                f"the GPU has not enough memory for {rows} rows of {length} tokens; lower "
                f"scoring.row_tokens (now {self.row_tokens})"
            ) from None
        self.tokens_processed += batch.real_tokens
        return pending

    def _check_reproduced(self, shape: Shape, is_causal: bool) -> None:
        if not self.is_compiled:
            beyond = beyond_windows(self, shape.length)
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
                f"token {batch.highest} is requested, but the model's embedding has "
                f"{self.vocab_size} rows; the tokens come from another tokenizer"
            )
        if batch.deepest >= self.longest:
            raise ScoringError(
                f"a request has more than {self.longest} tokens, where this model's rotary "
                "embedding begins to depend on what it is batched with; lower the sequence length"
            )


def longest_position(model: PreTrainedModel) -> float:
    """Return up to where a rotary embedding does not change with the longest input in the batch.

    Args:
        model: Any model.

    Returns:
        A number of tokens; infinite for most models.
    """
    config = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") not in ("dynamic", "longrope"):
        return math.inf
    known = rope.get("original_max_position_embeddings") or config.max_position_embeddings
    return float(known)
