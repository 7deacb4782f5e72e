"""Run a model's body over packed rows, with our masks and positions, and its head where it is needed.

Token q of a row attends to kv if `kv <= q and q < end[kv]`; in layers with a sliding window the positions
must also differ by less than the window. Positions are depths, so the window counts tokens of the
sequence, not of the row.

Letters: B rows, S tokens of a row, D width.
"""

import contextlib
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask
from transformers import Cache, PretrainedConfig, PreTrainedModel

from evaluation.errors import ScoringError
from evaluation.scoring.engine.gpu import (
    ATTENTION,
    Compiler,
    compile_layers,
    compiled,
    to_device,
)
from evaluation.scoring.engine.head import Head, declared
from evaluation.scoring.engine.packing import Batch, Ints, PackedRows, group_rows

SMALLEST = 256
"""Least tokens of a forward pass; if these exceed the memory, scoring fails."""

BLOCK = 128
"""Tokens of a block in flex attention's sparse masks."""

Mask = torch.Tensor | BlockMask | None


class Engine:
    """A model that is ready to score, in rows of a few lengths if its layers are compiled.

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
        self.compiler, self.head = compiler, Head(model, compiler)
        self.windows = layer_windows(model.config)
        self.vocab_size = model.get_input_embeddings().weight.shape[0]
        self.tokens_processed = 0
        self.checked: set[Hashable] = set()
        """Kinds of passes that were compared with the model's own."""
        if compiler is not None:
            compile_layers(model, compiler)

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        """Have the model use our masks and compiled layers while the block lasts."""
        own = self.model.config._attn_implementation
        self.model.set_attn_implementation(ATTENTION)
        stance = torch.compiler.set_stance("force_eager" if self.compiler is None else "default")
        try:
            with torch.inference_mode(), stance:
                yield
        finally:
            self.model.set_attn_implementation(own)

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

    def padded(self, length: int) -> int:
        """Return the length to which a row is padded: if compiled, 1/4, 1/2, 1, 2 ... of the budget."""
        if self.compiler is None:
            return length
        quarter = max(1, self.row_tokens // (4 * BLOCK)) * BLOCK
        return quarter << (-(-length // quarter) - 1).bit_length()

    def batches(self, rows: PackedRows) -> Iterator[Batch]:
        """Yield the rows in batches, the longest first; compiled layers run one row at a time."""
        most = self.row_tokens if self.compiler is None else 0
        for group in group_rows(rows.lengths, most):
            self.tokens_processed += sum(rows.lengths[row] for row in group)
            yield rows.batch(group, self.padded(rows.lengths[group[0]]))

    def hidden(self, batch: Batch, cache: Cache | None = None) -> torch.Tensor:
        """Return the last hidden states (B, S, D) of a batch."""
        tokens, depth, end = (to_device(part, self.device) for part in batch[:3])

        def mask(window: int | None) -> Mask:
            is_whole = batch.is_causal and (window is None or depth.shape[1] <= window)
            if self.compiler is None and is_whole:
                return None  # causal kernels need no mask
            return mask_of(depth, end, window, self.compiler)

        return self.body(tokens, depth, mask, cache)

    def body(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        mask: Callable[[int | None], Mask],
        cache: Cache | None,
    ) -> torch.Tensor:
        """Run the model's body with a mask for each window of its layers."""
        masks = {kind: mask(size) for kind, size in self.windows.items()}
        output = self.model.base_model(
            input_ids=tokens,
            attention_mask=masks.get("", masks),
            position_ids=positions,
            use_cache=cache is not None,
            **({} if cache is None else {"past_key_values": cache}),
        )
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    def score(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probability of each pair of a batch, and whether it is greedy; within `prepared`."""
        hidden = self.hidden(batch).flatten(0, 1)
        needed = hidden.index_select(0, to_device(batch.query, hidden.device))
        return self.head.score(needed, batch.pair, batch.target)


def mask_of(
    depth: torch.Tensor, end: torch.Tensor, window: int | None, compiler: Compiler | None
) -> torch.Tensor | BlockMask:
    """Return a boolean mask (B, 1, S, S), or for compiled layers a sparse one, without such a tensor."""

    def rule(b: torch.Tensor, _h: Any, q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        visible = (kv <= q) & (q < end[b, kv])
        return visible if window is None else visible & (depth[b, q] - depth[b, kv] < window)

    rows, length = end.shape
    if compiler is None:
        index = torch.arange(length, device=end.device)
        row = torch.arange(rows, device=end.device)[:, None, None]
        return rule(row, None, index[:, None], index)[:, None]
    make = compiled(create_block_mask, compiler)
    mask: BlockMask = make(rule, rows, None, length, length, end.device, BLOCK)
    return mask


def layer_windows(config: PretrainedConfig) -> dict[str, int | None]:
    """Return the attention window of each type of layer, or of all ("") for classes that take one mask.

    Refuse layers and positions that rows cannot be packed for.
    """
    rope = getattr(config, "rope_parameters", None) or {}
    if (kind := rope.get("rope_type")) in ("dynamic", "longrope"):
        raise ScoringError(
            f"the model's rotary embedding ({kind}) depends on the longest row of a batch, so that scores "
            "would depend on the other rows"
        )
    types = set(declared(config, "layer_types") or ())
    sliding = {"sliding_attention"} if hasattr(config, "sliding_window") else set()
    if unknown := types - {"full_attention"} - sliding:
        raise ScoringError(
            f"the model has layers of type {', '.join(sorted(unknown))}; only full and sliding "
            "attention can be scored"
        )
    if "sliding_attention" in types:
        return {"full_attention": None, "sliding_attention": config.sliding_window}
    return {"": None if types else declared(config, "sliding_window")}
