"""One forward pass of a transformers model over a batch, and the scores it was asked for.

The model's own body runs under masks and positions given explicitly; the head runs only where a
token is scored. On CPU it runs as it is, under dense masks. On a GPU its layers are compiled, for
plain sequences with a causal kernel and else with flex attention, in few fixed shapes; and nothing
waits for the GPU but who asks for a pass's scores.
"""

import contextlib
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import torch
from tqdm import tqdm
from transformers import PreTrainedModel

from evaluation.errors import NotEnoughMemory, ScoringError
from evaluation.scoring.engine import attend
from evaluation.scoring.engine.batches import PASS_TOKENS, Batch, collate, group_rows
from evaluation.scoring.engine.busy import working
from evaluation.scoring.engine.compiled import Compiler, compile_errors, compiled_parts, running
from evaluation.scoring.engine.head import Head
from evaluation.scoring.engine.masks import (
    BLOCK,
    block_mask,
    dense_mask,
    layer_masks,
    layer_windows,
)
from evaluation.scoring.engine.packed_rows import Row
from evaluation.scoring.engine.pending import PairScores, Pending
from evaluation.scoring.engine.self_check import SHORT, beyond_windows, check_eager, check_shape
from evaluation.scoring.engine.shapes import Shape, group_shapes, shape_of
from evaluation.scoring.engine.tries import Ints


class Engine:
    """A model ready to score batches of about `row_tokens` tokens.

    `compiler` is what its layers are compiled by: on a GPU `inductor`, on CPU none. Compiled, it
    runs fixed shapes and sparse masks.

    A model whose scores this way of running it does not reproduce is refused with a ScoringError:
    at once and before the first pass beyond a window, or compiled, before the first of each shape
    and kind of mask.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        row_tokens: int,
        device: str,
        compiler: Compiler | None = None,
    ) -> None:
        self.model = model
        self.row_tokens = row_tokens
        self.device = torch.device(device)
        self.compiler = compiler or ("inductor" if self.on_gpu else None)
        self.vocab_size = model.get_input_embeddings().weight.shape[0]
        self.windows = layer_windows(model.config)
        self.longest = longest_position(model)
        self.head = Head(_output_layer(model), self.compiler)
        self.tokens_processed = 0
        self._swaps: contextlib.ExitStack | None = None
        self._reproduced: set[tuple[Shape, bool]] = set()
        self._reproduced_to = SHORT
        if not self.is_compiled:
            check_eager(self)

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_compiled(self) -> bool:
        return self.compiler is not None

    def groups(self, lengths: Sequence[int], *, is_text: bool) -> Iterator[list[int]]:
        """Indices of the rows that run together, the longest first."""
        if not self.is_compiled:
            return group_rows(lengths, self.row_tokens)
        return (group for group, _ in group_shapes(lengths, self.row_tokens, is_text=is_text))

    def collate(self, rows: Sequence[Row], *, is_text: bool) -> Batch:
        """Rows side by side, padded to what this engine runs."""
        longest = max(map(len, rows))
        if not self.is_compiled:
            return collate(rows, longest)
        shape = shape_of(longest, self.row_tokens, is_text=is_text)
        batch = collate(rows, shape.length, count=shape.rows, is_trie=not is_text)
        return batch.pinned() if self.on_gpu else batch

    def row_capacity(self, shared: Ints, shortest: int = 0) -> Ints:
        """Tokens of rows whose inputs have prefixes of `shared` tokens in common.

        Compiled, a full forward pass, or as much as the prefix needs. Else attention is dense: a
        row of S tokens costs a S + b S^2 for S - `shared` tokens that are new, least per new token
        where S = shared + sqrt(shared^2 + shared a / b); but no less than `shortest`.
        """
        if self.is_compiled:
            return np.maximum(self.row_tokens, shared + BLOCK)
        per_token, per_pair = self.costs
        best = shared + np.sqrt(shared**2 + shared * per_token / per_pair)
        return np.maximum(shortest, best.astype(np.int64))

    def cost(self, groups: Iterable[Sequence[int]]) -> float:
        """Multiply-adds on CPU for rows of these lengths, each group one padded forward pass."""
        per_token, per_pair = self.costs
        return sum(
            len(group) * (group[0] * per_token + group[0] ** 2 * per_pair) + PASS_TOKENS * per_token
            for group in groups
        )

    @cached_property
    def costs(self) -> tuple[float, float]:
        """Multiply-adds of the body for each token, and for each pair of tokens in a row."""
        body = sum(weight.numel() for weight in self.model.base_model.parameters())
        body -= self.model.get_input_embeddings().weight.numel()
        config = self.model.config
        width = (
            getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        )
        return float(body), float(2 * config.num_hidden_layers * config.num_attention_heads * width)

    @torch.inference_mode()
    def hidden(self, batch: Batch) -> torch.Tensor:
        """The last hidden state, (B, S, D)."""
        tokens, depth, end = (
            part.to(self.device, non_blocking=True)
            for part in (batch.tokens, batch.depth, batch.end)
        )
        maker = block_mask if self.is_compiled else dense_mask
        masks = layer_masks(depth, end, self.windows, maker, is_causal=batch.is_causal)
        with self.prepared():
            output = self.model.base_model(
                input_ids=tokens, attention_mask=masks, position_ids=depth, use_cache=False
            )
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    def score(self, batch: Batch) -> PairScores:
        """Scores the pairs of a batch, in the order of its rows; raises like `launch`."""
        return self.launch(batch).scores()

    def launch(self, batch: Batch) -> Pending:
        """Begins to score the pairs of a batch.

        Raises:
            ScoringError: a token has no embedding; the layers cannot be compiled.
            NotEnoughMemory: of a GPU.
        """
        self._check(batch)
        try:
            self._check_reproduced(Shape(*batch.tokens.shape), batch.is_causal)
            pending = self.begin(batch)
        except torch.OutOfMemoryError:
            rows, length = batch.tokens.shape
            raise NotEnoughMemory(
                f"the GPU has not enough memory for {rows} rows of {length} tokens; lower "
                f"scoring.row_tokens (now {self.row_tokens})"
            ) from None
        self.tokens_processed += batch.real_tokens
        return pending

    @working
    @torch.inference_mode()
    def begin(self, batch: Batch) -> Pending:
        """`launch` without its checks."""
        with compile_errors():
            hidden = self.hidden(batch)
            queries = batch.queries.to(hidden.device, non_blocking=True)
            asked = hidden.view(-1, hidden.shape[-1]).index_select(0, queries)
            scored = self.head.score(asked, batch.pair_query, batch.pair_token)
            return Pending(scored, batch.order)

    def _check_reproduced(self, shape: Shape, is_causal: bool) -> None:
        if not self.is_compiled:
            beyond = beyond_windows(self, shape.length)
            if beyond > self._reproduced_to:
                with self._as_it_was():
                    check_eager(self, beyond)
                self._reproduced_to = beyond
        elif (shape, is_causal) not in self._reproduced:
            with self._as_it_was():
                check_shape(self, shape, is_causal=is_causal)
            self._reproduced.add((shape, is_causal))

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        """The model with our attention, and compiled layers; others get it back as it was.

        Once around many passes it costs nothing in each of them.
        """
        if self._swaps is not None:
            yield
            return
        self._prepare()
        try:
            yield
        finally:
            self._restore()

    @contextlib.contextmanager
    def _as_it_was(self) -> Iterator[None]:
        """The model as others know it, also where it is prepared."""
        is_prepared = self._swaps is not None
        if is_prepared:
            self._restore()
        try:
            yield
        finally:
            if is_prepared:
                self._prepare()

    def _prepare(self) -> None:
        self._swaps = contextlib.ExitStack()
        self._swaps.enter_context(attend.own_attention(self.model))
        if self.compiler is not None:
            self._swaps.enter_context(running(compiled_parts(self.model, self.compiler)))

    def _restore(self) -> None:
        swaps, self._swaps = self._swaps, None
        if swaps is not None:
            swaps.close()

    def _check(self, batch: Batch) -> None:
        if batch.highest >= self.vocab_size:
            raise ScoringError(
                f"token {batch.highest} is asked for, but the model's embedding has "
                f"{self.vocab_size} rows; the tokens come from another tokenizer"
            )
        if batch.deepest >= self.longest:
            raise ScoringError(
                f"a request has more than {self.longest} tokens, where this model's rotary "
                "embedding begins to depend on what it is batched with; lower the sequence length"
            )

    def progress(self, batches: Iterable[Batch], total: int, label: str | None) -> Iterator[Batch]:
        """Passes batches through, showing tokens per second and time left; None shows nothing."""
        with tqdm(
            total=total,
            desc=label,
            unit="tok",
            unit_scale=True,
            mininterval=0.5 if sys.stderr.isatty() else 10,  # a log keeps every line
            disable=label is None,
        ) as bar:
            for batch in batches:
                yield batch
                bar.update(batch.real_tokens)


def _output_layer(model: PreTrainedModel) -> torch.nn.Linear:
    layer = model.get_output_embeddings()
    if not isinstance(layer, torch.nn.Linear):
        raise ScoringError(
            f"{type(model).__name__} has no linear output layer; only causal language models are scored"
        )
    return layer


def longest_position(model: PreTrainedModel) -> float:
    """Positions up to which a rotary embedding does not change with the longest one beside it."""
    config = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") not in ("dynamic", "longrope"):
        return math.inf
    known = rope.get("original_max_position_embeddings") or config.max_position_embeddings
    return float(known)
