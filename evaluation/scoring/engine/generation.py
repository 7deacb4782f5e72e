"""Greedy decoding of many prompts at once, with the same answer as for each of them alone.

Prompts are read in groups of nearly one length, then continued together, padded on the left under
an attention mask: what stands in the padding does not matter, and no token id means padding.
Positions count a prompt's own tokens. A row that has ended leaves the batch, and its keys and
values leave the cache.

Only ids that the tokenizer knows are chosen: a padded vocabulary has rows that were never
trained. Logits are fp32, as the best two often tie in bf16.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.functional import pad
from tqdm import tqdm
from transformers import DynamicCache, PreTrainedModel

from evaluation.errors import NonFiniteError
from evaluation.progress import progress
from evaluation.scoring.answers import Answer, GenerationRequest, Stopping, StopReason
from evaluation.scoring.engine.head import Head

_NEARLY = 0.85  # prompts read together are at least this long, relative to the longest
_READ_TOKENS = 8192  # and so many tokens in all, padding included, unless one alone is longer


@dataclass
class _Row:
    """An answer in the making."""

    request: GenerationRequest
    stopping: Stopping
    tokens: list[int] = field(default_factory=list)
    stop_reason: StopReason | None = None

    def take(self, token: int) -> None:
        if token in self.stopping.eos_ids:
            self.stop_reason = "eos"
            return
        self.tokens.append(token)
        if self.stopping.reached(self.tokens):
            self.stop_reason = "stop_string"
        elif len(self.tokens) == self.request.max_new_tokens:
            self.stop_reason = "length"

    def answer(self) -> Answer:
        text, stopped = self.stopping.cut(self.tokens)
        reason = "stop_string" if stopped else self.stop_reason
        return Answer(text, tuple(self.tokens), reason or "length")


def generate(
    model: PreTrainedModel,
    requests: Sequence[GenerationRequest],
    stopping: Stopping,
    *,
    vocabulary: int,
    batch: int,
    device: str | torch.device,
) -> Iterator[dict[int, Answer]]:
    """Answers by the index of their request, `batch` of them at once, longest prompts first.

    Args:
        vocabulary: ids from here on are never chosen.

    Raises:
        NonFiniteError: where the model gives NaN or infinity, naming the prompt.
    """
    order = sorted(range(len(requests)), key=lambda index: -len(requests[index].tokens))
    head = Head(model.get_output_embeddings())
    with progress("probes", len(requests), "answer") as bar:
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            rows = [_Row(requests[index], stopping) for index in chosen]
            with torch.inference_mode(), _sdpa(model):
                _decode(model, head, rows, vocabulary, device, bar)
            yield dict(zip(chosen, (row.answer() for row in rows), strict=True))


@contextlib.contextmanager
def _sdpa(model: PreTrainedModel) -> Iterator[None]:
    """Attention by SDPA for now: another kind would compile anew for each length."""
    before = model.config._attn_implementation
    model.set_attn_implementation("sdpa")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


@dataclass
class _State:
    """What the next token of some rows depends on."""

    hidden: torch.Tensor  # (B, D), at the last token
    mask: torch.Tensor  # (B, T), 0 in the padding on the left
    positions: torch.Tensor  # (B, 1), of the last token
    cache: DynamicCache  # keys and values (B, H, T, d) of each layer


def _step(
    model: PreTrainedModel,
    ids: torch.Tensor,
    mask: torch.Tensor,
    positions: torch.Tensor,
    cache: DynamicCache,
) -> _State:
    """Reads ids (B, t), the last of T tokens, at their positions (B, t)."""
    hidden = model.base_model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state[:, -1]
    return _State(hidden, mask, positions[:, -1:], cache)


def _groups(rows: list[_Row]) -> Iterator[list[_Row]]:
    """Rows, longest first, in runs of nearly one length, so that little padding is read."""
    group: list[_Row] = []
    for row in rows:
        longest = len(group[0].request.tokens) if group else 0
        full = (len(group) + 1) * longest > _READ_TOKENS
        if group and (full or len(row.request.tokens) < _NEARLY * longest):
            yield group
            group = []
        group.append(row)
    yield group


def _read(model: PreTrainedModel, rows: list[_Row], device: str | torch.device) -> _State:
    """Reads the prompts of a few rows, padded on the left to the longest."""
    width = max(len(row.request.tokens) for row in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for index, row in enumerate(rows):
        ids[index, width - len(row.request.tokens) :] = torch.tensor(row.request.tokens)
        mask[index, width - len(row.request.tokens) :] = 1
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    return _step(model, ids.to(device), mask.to(device), positions.to(device), DynamicCache())


def _join(states: list[_State]) -> _State:
    """One state of all rows, padded on the left to the widest."""
    width = max(state.mask.shape[1] for state in states)
    pads = [width - state.mask.shape[1] for state in states]
    cache = DynamicCache()
    for index in range(len(states[0].cache.layers)):
        layers = [state.cache.layers[index] for state in states]
        keys, values = (
            torch.cat([pad(part, (0, 0, left, 0)) for part, left in zip(parts, pads, strict=True)])
            for parts in ([layer.keys for layer in layers], [layer.values for layer in layers])
        )
        cache.update(keys, values, index)
        for state in states:  # only one copy of a layer at a time
            state.cache.layers[index].reset()
    return _State(
        hidden=torch.cat([state.hidden for state in states]),
        mask=torch.cat(
            [pad(state.mask, (left, 0)) for state, left in zip(states, pads, strict=True)]
        ),
        positions=torch.cat([state.positions for state in states]),
        cache=cache,
    )


def _decode(
    model: PreTrainedModel,
    head: Head,
    rows: list[_Row],
    vocabulary: int,
    device: str | torch.device,
    bar: "tqdm[Any]",
) -> None:
    """Fills the rows, one token of each at a time, until all have ended."""
    state = _join([_read(model, group, device) for group in _groups(rows)])
    live = rows
    while True:
        best = _best_ids(head.logits(state.hidden)[:, :vocabulary], live)  # (B,)
        for row, token in zip(live, best.tolist(), strict=True):
            row.take(token)
        going = [index for index, row in enumerate(live) if row.stop_reason is None]
        bar.update(len(live) - len(going))
        if not going:
            return
        keep = torch.tensor(going, device=best.device)
        if len(going) < len(live):
            state.cache.batch_select_indices(keep)
            live = [live[index] for index in going]
        ids = best[keep, None]  # (B, 1)
        mask = torch.cat([state.mask[keep], torch.ones_like(ids)], dim=-1)
        state = _step(model, ids, mask, state.positions[keep] + 1, state.cache)


def _best_ids(logits: torch.Tensor, rows: list[_Row]) -> torch.Tensor:
    """The id of each row's largest logit, the lowest of those that tie; (B, V) -> (B,)."""
    largest, best = logits.max(dim=-1)  # NaN counts as larger than any number
    bad = (~torch.isfinite(largest)).nonzero().flatten().tolist()
    if bad:
        row = rows[bad[0]]
        raise NonFiniteError(
            f"probe {row.request.id}: the model gives NaN or infinite logits for token "
            f"{len(row.tokens) + 1} of its answer; the checkpoint's weights are broken or overflow "
            "in this dtype (set scoring.dtype: float32)"
        )
    return best
