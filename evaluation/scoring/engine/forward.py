"""One forward pass of a transformers model over a batch, and the scores it was asked for.

The model's own body runs under masks and positions given explicitly; the head runs only where a
token is scored. SDPA on CPU; on a GPU flex attention for tries, SDPA for plain sequences.
"""

import contextlib
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm
from transformers import PreTrainedModel

from evaluation.errors import ScoringError
from evaluation.scoring.engine.attention import (
    BLOCK,
    block_mask,
    build_mask,
    dense_mask,
    layer_windows,
)
from evaluation.scoring.engine.batches import PASS_TOKENS, Batch, collate
from evaluation.scoring.engine.head import Head, Scored
from evaluation.scoring.engine.rows import Row

TOLERANCE = {torch.float32: 1e-3}
"""Relative L2 error allowed between two ways to the same logits, by type; 0.05 for narrower ones."""


class PairScores(NamedTuple):
    """For each pair its log-probability in nats, and whether its token is the most likely."""

    logprob: NDArray[np.float64]
    is_greedy: NDArray[np.bool_]


class NotEnoughMemory(ScoringError):
    """Fewer tokens in a forward pass may do."""


class Engine:
    """A model ready to score batches of about `row_tokens` tokens.

    Raises ScoringError for a model whose logits this way of running it does not reproduce.
    """

    def __init__(self, model: PreTrainedModel, *, row_tokens: int, device: str) -> None:
        self.model = model
        self.row_tokens = row_tokens
        self.device = torch.device(device)
        self.vocab_size = model.get_input_embeddings().weight.shape[0]
        self.windows = layer_windows(model.config)
        self.longest = longest_position(model)
        self.head = Head(_output_layer(model))
        self.tokens_processed = 0
        check_reproduced(self)

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    def pad_length(self, length: int) -> int:
        """Tokens to pad a row to: on a GPU few different lengths, each a multiple of a block."""
        if not self.on_gpu:
            return length
        padded = max(BLOCK, 1 << (length - 1).bit_length())
        full = -(-self.row_tokens // BLOCK) * BLOCK
        return full if length <= full < padded else padded

    def row_capacity(self, shared: int, shortest: int = 0) -> int:
        """Tokens of a row whose inputs have a prefix of `shared` tokens in common.

        On a GPU a full forward pass, or as much as the prefix needs. On CPU attention is dense: a
        row of S tokens costs a S + b S^2 for S - `shared` tokens that are new, least per new token
        where S = shared + sqrt(shared^2 + shared a / b); but no less than `shortest`.
        """
        if self.on_gpu:
            return max(self.row_tokens, shared + BLOCK)
        per_token, per_pair = self.costs
        return max(shortest, int(shared + math.sqrt(shared**2 + shared * per_token / per_pair)))

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
    def hidden(self, batch: Batch, *, use_flex: bool) -> torch.Tensor:
        """The last hidden state, (B, S, D)."""
        depth, end = batch.depth.to(self.device), batch.end.to(self.device)
        # Without a mask a plain sequence runs in SDPA's causal kernel, which skips what is masked.
        mask = None
        if not batch.is_causal:
            mask = build_mask(depth, end, self.windows, block_mask if use_flex else dense_mask)
        with self._attention("flex_attention" if use_flex else "sdpa"):
            output = self.model.base_model(
                input_ids=batch.tokens.to(self.device),
                attention_mask=mask,
                position_ids=depth,
                use_cache=False,
            )
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    @torch.inference_mode()
    def score(self, batch: Batch) -> PairScores:
        """Scores the pairs of a batch, in the order of its rows.

        Raises:
            ScoringError: a token has no embedding.
            NotEnoughMemory: of a GPU.
        """
        self._check(batch)
        try:
            hidden = self.hidden(batch, use_flex=self.on_gpu and not batch.is_causal)
            queries = batch.queries.to(self.device)
            asked = hidden.view(-1, hidden.shape[-1]).index_select(0, queries)
            scored = self.head.score(asked, batch.pair_query, batch.pair_token)
        except torch.OutOfMemoryError:
            rows, length = batch.tokens.shape
            raise NotEnoughMemory(
                f"the GPU has not enough memory for {rows} rows of {length} tokens; lower "
                f"scoring.row_tokens (now {self.row_tokens})"
            ) from None
        self.tokens_processed += batch.real_tokens
        return _in_row_order(scored, batch.order)

    @contextlib.contextmanager
    def _attention(self, implementation: str) -> Iterator[None]:
        """The model is used by others too, so it gets back the attention it had."""
        own = self.model.config._attn_implementation
        if own == implementation:
            yield
            return
        self.model.set_attn_implementation(implementation)
        try:
            yield
        finally:
            self.model.set_attn_implementation(own)

    def _check(self, batch: Batch) -> None:
        highest = max(int(batch.tokens.max()), int(batch.pair_token.max()))
        if highest >= self.vocab_size:
            raise ScoringError(
                f"token {highest} is asked for, but the model's embedding has {self.vocab_size} "
                "rows; the tokens come from another tokenizer"
            )
        if int(batch.depth.max()) >= self.longest:
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


def _in_row_order(scored: Scored, order: NDArray[np.int64]) -> PairScores:
    logprob = np.empty(len(order))
    is_greedy = np.empty(len(order), dtype=np.bool_)
    logprob[order] = scored.logprob.double().cpu().numpy()
    is_greedy[order] = scored.is_greedy.cpu().numpy()
    return PairScores(logprob, is_greedy)


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


@torch.inference_mode()
def check_reproduced(engine: Engine) -> None:
    """Compares a small trie with the model's own forward pass over each of its sequences.

    Some classes scale their logits behind the head, or carry a state past any mask; they would be
    scored wrongly without notice.
    """
    first, second = np.array([1, 2, 3, 4]), np.array([1, 2, 5])
    row = Row(
        tokens=np.array([1, 2, 3, 4, 5]) % engine.vocab_size,
        depth=np.array([0, 1, 2, 3, 2]),
        end=np.array([5, 5, 4, 4, 5]),
        pair_query=np.array([4]),
        pair_token=np.array([0]),
        owners=np.array([0]),
        counts=np.array([1]),
    )
    ours = engine.head.logits(engine.hidden(collate([row], len(row)), use_flex=False)[0])
    for tokens, last in ((first, 3), (second, 4)):
        sequence = torch.from_numpy(tokens[None] % engine.vocab_size).to(engine.device)
        own = engine.model(input_ids=sequence, use_cache=False).logits[0, -1].float()
        error = float((ours[last] - own).norm() / own.norm())
        if error > TOLERANCE.get(engine.model.dtype, 0.05):  # False for NaN, which scoring reports
            raise ScoringError(
                f"{type(engine.model).__name__} cannot be scored: its own logits differ from those "
                f"of its body and head under a mask by {error:.1e} (relative L2); score it by a `command` of your own"
            )
