"""Run a model's body over packed rows, with our masks and positions, and its head where it is needed.

Token q of a row attends to kv if `kv <= q and q < end[kv]`; in layers with a sliding window the positions
must also differ by less than the window. Positions are depths, so the window counts tokens of the
sequence, not of the row. Logits are float32, also from bfloat16 weights: rounding them costs 0.03 nat a
token.

Letters: B rows, S tokens of a row, D width, Q queries, P pairs of a query and a token, V vocabulary.
"""

import contextlib
from collections.abc import Hashable, Iterator, Mapping
from itertools import pairwise
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
from evaluation.scoring.engine.packing import Batch, Ints, PackedRows, group_rows

BLOCK = 128
"""Tokens of a block in flex attention's sparse masks."""

CHUNK_LOGITS = {"cpu": 1 << 24, "cuda": 1 << 28}
"""Most logits at a time: 64 MB on CPU, for the cache's sake, and 1 GB on a GPU."""

Masks = Mapping[str, torch.Tensor | BlockMask | None]
"""A mask for each type of layer, or for all (""); None: causal."""


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
        self.vocab_size = len(model.get_input_embeddings().weight)
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
        """Return the last hidden states (B S, D) of a batch; within `prepared`."""
        tokens, depth, end = (to_device(part, self.device) for part in batch[:3])
        # Causal kernels need no mask.
        is_plain = self.compiler is None and batch.is_causal
        masks = {
            kind: None
            if is_plain and (window is None or depth.shape[1] <= window)
            else self.mask(depth, end, window)
            for kind, window in self.windows.items()
        }
        return self.body(tokens, depth, masks, cache).flatten(0, 1)

    def mask(
        self, depth: torch.Tensor, end: torch.Tensor, window: int | None
    ) -> torch.Tensor | BlockMask:
        """Return a boolean mask (B, 1, S, S), or for compiled layers a sparse one, without such a tensor."""

        def rule(b: torch.Tensor, _h: Any, q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
            visible = (kv <= q) & (q < end[b, kv])
            return visible if window is None else visible & (depth[b, q] - depth[b, kv] < window)

        rows, length = end.shape
        if self.compiler is None:
            index = torch.arange(length, device=end.device)
            row = torch.arange(rows, device=end.device)[:, None, None]
            return rule(row, None, index[:, None], index)[:, None]
        make = compiled(create_block_mask, self.compiler)
        mask: BlockMask = make(rule, rows, None, length, length, end.device, BLOCK)
        return mask

    def body(
        self, tokens: torch.Tensor, positions: torch.Tensor, masks: Masks, cache: Cache | None
    ) -> torch.Tensor:
        """Run the model's body, and return its last hidden states (B, S, D)."""
        hidden: torch.Tensor = self.model.base_model(
            input_ids=tokens,
            attention_mask=masks.get("", masks),
            position_ids=positions,
            past_key_values=cache,
            use_cache=cache is not None,
        ).last_hidden_state
        return hidden

    def score(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probability of each pair of a batch, and whether it is greedy; within `prepared`."""
        return self.head.score(self.hidden(batch), batch.query, batch.target)


class Head:
    """A model's output layer, with what its class does to logits, as the configuration says.

    The check compares the result with the class's own logits, so a factor that is unknown here is found.
    """

    def __init__(self, model: PreTrainedModel, compiler: Compiler | None = None) -> None:
        layer, config = model.get_output_embeddings(), model.config
        if not isinstance(layer, torch.nn.Linear):
            raise ScoringError(f"{type(model).__name__} has no linear output layer")
        weight, bias = layer.weight, layer.bias
        # A GPU's products of narrow weights are put out in float32.
        self._is_narrow = weight.is_cuda and weight.dtype != torch.float32
        self._weight = (weight if self._is_narrow else weight.float()).T
        self._bias = None if bias is None else bias.float()
        self._factor = declared(config, "logit_scale") or 1.0
        self._factor /= declared(config, "logits_scaling") or 1.0
        self._cap = declared(config, "final_logit_softcapping")
        self._totals = compiled(_totals, compiler, is_dynamic=True) if compiler else _totals
        self._in_place = compiler is None
        self.rows = max(1, CHUNK_LOGITS[weight.device.type] // len(weight))
        """Queries of a chunk."""

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits (Q, V) of hidden states (Q, D) in float32."""
        if self._is_narrow:
            logits = torch.mm(hidden, self._weight, out_dtype=torch.float32)
        else:
            logits = torch.mm(hidden.float(), self._weight)
        if self._bias is not None:
            logits.add_(self._bias)
        if self._factor != 1:
            logits.mul_(self._factor)
        return logits if self._cap is None else logits.div_(self._cap).tanh_().mul_(self._cap)

    def score(
        self, hidden: torch.Tensor, query: Ints, target: Ints
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probability of each pair (P,), and whether its token is the likeliest.

        `query`, ascending indices of hidden states, and `target` are on the host, so that nothing waits
        for a GPU to find the chunks' bounds.
        """
        distinct, pair = np.unique(query, return_inverse=True)
        needed, pairs, targets = (
            to_device(part, hidden.device) for part in (distinct, pair, target)
        )
        firsts = range(0, len(distinct), self.rows)
        bounds = np.searchsorted(pair, [*firsts, len(distinct)])
        scored = []
        for first, (begin, stop) in zip(firsts, pairwise(bounds), strict=True):
            logits = self.logits(hidden[needed[first : first + self.rows]])
            row, token = pairs[begin:stop] - first, targets[begin:stop]
            chosen = logits[row, token]
            total, likeliest = self._totals(logits, logits if self._in_place else None)
            scored.append((chosen - total[row], likeliest[row] == token))
            del logits  # before the next chunk's are computed
        logprob, is_greedy = map(torch.cat, zip(*scored, strict=True))
        return logprob, is_greedy


def _totals(
    logits: torch.Tensor, differences: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logarithm of the sum of exponentials, and the likeliest token, (Q,) each.

    The logits themselves may be overwritten, to need no second tensor of their size.
    """
    top, likeliest = logits.max(dim=-1)
    shifted = torch.sub(logits, top[:, None], out=differences)
    return top + shifted.exp_().sum(dim=-1).log_(), likeliest


def declared(config: PretrainedConfig, key: str) -> Any:
    """Return a key that the configuration's class declares: Llama accepts any other, and ignores it."""
    return getattr(config, key, None) if hasattr(type(config), key) else None


def layer_windows(config: PretrainedConfig) -> dict[str, int | None]:
    """Return the attention window of each type of layer, or of all ("") for classes that take one mask.

    Refuse layers and positions that rows cannot be packed for.
    """
    types: set[str] = set(declared(config, "layer_types") or ())
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "")
    others = (types - {"full_attention", "sliding_attention"}) | ({rope} & {"dynamic", "longrope"})
    if others:
        raise ScoringError(
            f"the model has layers or positions of type {', '.join(sorted(others))}; only full and sliding "
            "attention can be scored, with positions that do not depend on a batch's longest row"
        )
    if "sliding_attention" in types:
        return {"full_attention": None, "sliding_attention": config.sliding_window}
    return {"": None if types else declared(config, "sliding_window")}
