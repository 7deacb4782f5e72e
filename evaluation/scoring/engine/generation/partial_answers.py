"""Keep the partial answers of the batch being decoded, with their slots and shared prefixes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from evaluation.errors import NonFiniteError
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest, StopReason, StopSearch
from evaluation.scoring.engine.generation.kv_cache import (
    NOWHERE,
    WIDEN,
    DecodingStep,
    Prefix,
    Share,
    Slots,
)
from evaluation.scoring.engine.generation.prompts import PrefilledPrompt
from evaluation.scoring.engine.generation.sampling import Rules, Stream, choose

_SHARED_FROM = 32
"""Least tokens of a prompt that its samples share; a shorter one is copied to each."""


@dataclass(eq=False)
class PartialAnswer:
    """An answer that is being decoded."""

    key: AnswerKey
    request: GenerationRequest
    search: StopSearch
    stream: Stream | None  # None: greedy
    shares: tuple[Prefix, ...]
    copied: tuple[Prefix, ...]  # are to be copied to the beginning of its slot
    used: int  # columns in use of its slot
    tokens: list[int] = field(default_factory=list)
    stop_reason: StopReason | None = None

    @classmethod
    def of(
        cls, prompt: PrefilledPrompt, sample: int, width: int, *, shares: bool = True
    ) -> "PartialAnswer":
        """Begin an answer; several samples share a long prompt.

        Args:
            shares: Whether it reads shared prefixes where they are; otherwise it gets a copy of all.
        """
        request = prompt.request
        is_shared = len(request.samples) > 1 and prompt.rest.length >= _SHARED_FROM
        chain = tuple(prefix for prefix in (prompt.stem, prompt.rest) if prefix is not None)
        first = (len(chain) if is_shared else len(chain) - 1) if shares else 0
        return replace(
            cls.without_cache(prompt.index, request, sample, width),
            shares=chain[:first],
            copied=chain[first:],
            used=sum(prefix.length for prefix in chain[first:]),
        )

    @classmethod
    def without_cache(
        cls, index: int, request: GenerationRequest, sample: int, width: int
    ) -> "PartialAnswer":
        """Begin an answer whose keys and values are kept elsewhere."""
        stream = Stream(request, sample, width) if request.sampling.temperature else None
        search = StopSearch(request.stopping, request.tokens)
        return cls(AnswerKey(index, sample), request, search, stream, (), (), 0)

    @property
    def start(self) -> int:
        """Position of its slot's first column."""
        return self.shares[-1].stop if self.shares else 0

    def take(self, token: int) -> None:
        """Add a token, and set `stop_reason` if it ends the answer; -1, for NaN, is a NonFiniteError."""
        if token < 0:
            raise NonFiniteError(
                f"prompt {self.request.id}: the model returns NaN or infinite logits for token "
                f"{len(self.tokens) + 1} of its answer; the checkpoint's weights are broken or "
                "overflow in this dtype (set scoring.dtype: float32)"
            )
        if token in self.search.stopping.eos_ids:
            self.stop_reason = "eos"
            return
        self.tokens.append(token)
        if self.search.reached(self.tokens):
            self.stop_reason = "stop_string"
        elif len(self.tokens) >= self.request.max_new_tokens:
            self.stop_reason = "length"

    def answer(self) -> Answer:
        """Return the decoded answer, cut at a stop string; its reason is `length` without another one."""
        reason = self.stop_reason or "length"
        return self.search.stopping.answer(self.request.tokens, self.tokens, reason)


def rules_of(rows: Sequence[PartialAnswer], device: torch.device) -> Rules | None:
    """Return the sampling settings of rows; None if all rows are greedy."""
    if all(row.stream is None for row in rows):
        return None
    return Rules.of([row.request.sampling for row in rows], device)


def next_tokens(
    rows: Sequence[PartialAnswer], logits: torch.Tensor, rules: Rules | None, width: int
) -> torch.Tensor:
    """Choose each row's next token from logits (B, V); -1 for NaN or infinity."""
    if rules is None:
        return choose(logits, None, None)
    drawn = np.zeros((len(rows), width))
    for index, row in enumerate(rows):
        if row.stream is not None:
            drawn[index] = row.stream.next()
    return choose(logits, rules, torch.from_numpy(drawn).to(logits.device))


def take_next(
    rows: Sequence[PartialAnswer], logits: torch.Tensor, rules: Rules | None, width: int
) -> torch.Tensor:
    """Choose like `next_tokens`, and give each row its token; this waits for the device once."""
    chosen = next_tokens(rows, logits, rules, width)
    for row, token in zip(rows, chosen.tolist(), strict=True):
        row.take(token)
    return chosen


class BatchTables:
    """The tables of a batch that stay constant from step to step while it has the same rows."""

    def __init__(
        self, rows: Sequence[PartialAnswer], device: torch.device, head: torch.device
    ) -> None:
        self.rows = list(rows)
        self.rules = rules_of(rows, head)
        self._device = device
        self.shares, self._begin = _shares(rows, device)
        self._starts = torch.tensor([[row.start] for row in rows], device=device)
        self._columns = self._with_slots(0)

    def _with_slots(self, width: int) -> torch.Tensor:
        """Return positions (B, T) of the columns: of the shared prefixes, and `width` of the slots."""
        shared = torch.full((len(self.rows), self._begin), NOWHERE, device=self._device)
        for share in self.shares:
            prefix = share.prefix
            positions = torch.arange(prefix.start, prefix.stop, device=self._device)
            shared[share.rows, share.column : share.column + prefix.length] = positions
        in_slots = self._starts + torch.arange(width, device=self._device)
        return torch.cat([shared, in_slots], dim=1)

    def step(
        self, slots: Slots, windows: Sequence[int | None]
    ) -> tuple[torch.Tensor, DecodingStep]:
        """Return the next step's ids and positions (2, B), and its cache; a column more is then used."""
        places = [row.used for row in self.rows]
        width = -(-(max(places) + 1) // WIDEN) * WIDEN
        if self._columns.shape[1] != self._begin + width:
            self._columns = self._with_slots(width)
        ids = [row.tokens[-1] for row in self.rows]
        positions = [row.start + row.used for row in self.rows]
        table = torch.tensor([ids, positions, places]).to(self._device)
        step = DecodingStep(slots, self.shares, self._columns, table[1], table[2], windows)
        for row in self.rows:
            row.used += 1
        return table[:2], step


def _shares(rows: Sequence[PartialAnswer], device: torch.device) -> tuple[list[Share], int]:
    """Return all shared prefixes with their rows, and their total width; stems come before prompts."""
    shares: list[Share] = []
    begin = 0
    for level in range(2):
        members: dict[int, list[int]] = {}
        prefixes: dict[int, Prefix] = {}
        for index, row in enumerate(rows):
            if level < len(row.shares):
                prefix = row.shares[level]
                prefixes[id(prefix)] = prefix
                members.setdefault(id(prefix), []).append(index)
        for name, prefix in prefixes.items():
            are_all = len(members[name]) == len(rows)
            sharing = slice(None) if are_all else torch.tensor(members[name], device=device)
            shares.append(Share(prefix, sharing, begin))
        begin += max((prefix.length for prefix in prefixes.values()), default=0)
    return shares, begin
