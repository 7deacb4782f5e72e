"""Generate answers to many prompts at once; each is the same as if it were generated alone.

Prompts are read as packed rows, so that a prefix which they share is read once; their keys and values
are copied into slots, one for each answer, and a slot is refilled when its answer ends. Logits are
float32, as the best two often tie in bfloat16. Only the tokenizer's ids are chosen: a padded vocabulary
has rows that were never trained.

Letters: B rows, V vocabulary.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from evaluation.errors import NonFiniteError, NotEnoughMemory, ScoringError
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest, StopReason, StopSearch
from evaluation.scoring.engine.forward import SMALLEST, Engine
from evaluation.scoring.engine.gpu import gpu_faults
from evaluation.scoring.engine.masks import Mask
from evaluation.scoring.engine.sampling import Rules, Stream, choose, stream_width
from evaluation.scoring.engine.slots import PrefillCache, Slots, rows_in_memory
from evaluation.scoring.engine.tries import PackedInputs, PackedRow, group_rows, key_of

log = logging.getLogger(__name__)

PART_ANSWERS, PART_SECONDS = 128, 30.0
"""Answers and seconds after which a part of the answers is yielded: a killed job loses at most a part."""

MOST = {"cpu": 64, "cuda": 1024}
"""Most rows by default, by the type of device: a step reads all weights, however many rows it has."""

Answers = dict[AnswerKey, Answer]


@dataclass(eq=False)
class PrefilledPrompt:
    """A prompt that was read: where its keys and values are, and the logits (V,) of its first new token."""

    index: int
    samples: list[int]  # not begun yet, the next one last
    reading: PrefillCache
    row: int
    path: torch.Tensor
    logits: torch.Tensor


@dataclass(eq=False)
class PartialAnswer:
    """An answer that is being decoded; `used` is the number of columns in use of its slot."""

    key: AnswerKey
    request: GenerationRequest
    search: StopSearch
    stream: Stream | None  # None: greedy
    used: int
    tokens: list[int] = field(default_factory=list)
    stop_reason: StopReason | None = None

    def take(self, token: int) -> None:
        """Add a token, and set `stop_reason` if it ends the answer; -1, for NaN, is a NonFiniteError."""
        if token < 0:
            raise NonFiniteError(
                f"prompt {self.request.id}: the model returns NaN or infinite logits for token "
                f"{len(self.tokens) + 1} of its answer; the checkpoint's weights are broken or "
                "overflow in this dtype (set scoring.dtype: float32)"
            )
        if token in self.request.stopping.eos_ids:
            self.stop_reason = "eos"
            return
        self.tokens.append(token)
        if self.search.reached(self.tokens):
            self.stop_reason = "stop_string"
        elif len(self.tokens) >= self.request.max_new_tokens:
            self.stop_reason = "length"


class Decoding:
    """Rows that decode an answer each, and are refilled once that ends, or else with the last row.

    At most `rows` are decoded at once, fewer if free memory is for fewer. `seen` gets the logits (V,) from
    which each token was chosen.
    """

    _slots: Slots

    def __init__(
        self,
        engine: Engine,
        requests: Sequence[GenerationRequest],
        wanted: set[AnswerKey],
        vocabulary: int,
        rows: int,
        seen: dict[AnswerKey, list[torch.Tensor]] | None = None,
    ) -> None:
        self._engine, self._requests, self.most = engine, requests, rows
        self._vocabulary, self._seen = vocabulary, seen
        self._samples: dict[int, list[int]] = {}
        for index, sample in sorted(wanted, reverse=True):
            self._samples.setdefault(index, []).append(sample)
        self._order = list(self._samples)
        keys = [key_of(requests[index].tokens) for index in self._order]
        self._packed = PackedInputs(keys, [key_of([0])] * len(keys), engine.capacity)
        self._unread = group_rows(self._packed.lengths, engine.row_tokens)[::-1]
        self._ready, self._rows = list[PrefilledPrompt](), list[PartialAnswer]()
        self._rules: Rules | None = None
        self._ended: list[int] = []  # rows whose slot is free
        self._finished: Answers = {}

    def parts(self) -> Iterator[Answers]:
        """Yield all answers, at least one at a time; end early if memory is exhausted."""
        is_going = True
        while is_going:
            try:
                with gpu_faults(), self._engine.prepared():
                    is_going = self._run()
            except NotEnoughMemory:
                is_going = False
            part, self._finished = self._finished, {}
            if part:
                yield part

    def _run(self) -> bool:
        """Decode until a part is full; return False when all answers are finished."""
        until = time.monotonic() + PART_SECONDS
        while len(self._finished) < PART_ANSWERS and time.monotonic() < until:
            if self._fill():
                self._rules = self._rules_of(self._rows)
            if not self._rows:
                return False
            self._advance()
        return True

    def _fill(self) -> bool:
        """Begin samples in free rows; move the last rows into those that stay free; tell of changes."""
        before = list(self._rows)
        while (free := self.most - len(self._rows) + len(self._ended)) > 0:
            while self._ready and not self._ready[-1].samples:
                self._ready.pop()
            if self._ready:
                self._begin(self._ready[-1], min(free, len(self._ready[-1].samples)))
            elif self._unread:
                self._read([self._packed.row(i) for i in self._unread.pop()])
            else:
                break
        for place in sorted(self._ended, reverse=True):
            last = self._rows.pop()
            if place < len(self._rows):
                self._slots.move(len(self._rows), place, last.used)
                self._rows[place] = last
        self._ended = []
        return before != self._rows

    def _read(self, rows: Sequence[PackedRow]) -> None:
        """Read the prompts of some rows in one pass; the longest is begun first."""
        batch, reading = self._engine.collate(rows, is_text=False), PrefillCache()
        hidden = self._engine.hidden(batch, reading).flatten(0, 1)
        logits = self._engine.head.logits(hidden.index_select(0, batch.query.to(hidden.device)))
        place = np.divmod(batch.query[batch.pair].numpy(), batch.tokens.shape[1])
        for owner, row, query, pair in zip(batch.owner, *place, batch.pair.tolist(), strict=True):
            path = torch.from_numpy(batch.rows[row].before(query)).to(hidden.device)
            index = self._order[owner]
            samples = self._samples[index]
            self._ready.append(
                PrefilledPrompt(index, samples, reading, int(row), path, logits[pair])
            )
        self._ready.sort(key=lambda prompt: self._length(prompt.index))
        if not hasattr(self, "_slots"):
            columns = max(map(self._length, self._order))
            self.most = min(self.most, rows_in_memory(reading, columns, self._vocabulary))
            log.info("decoding %d answers at once", self.most)
            self._slots = Slots(self.most, reading)

    def _length(self, index: int) -> int:
        return len(self._requests[index].tokens) + self._requests[index].max_new_tokens

    def _begin(self, prompt: PrefilledPrompt, count: int) -> None:
        """Begin some samples of a prompt: their first token follows from the prompt's logits."""
        request = self._requests[prompt.index]
        rows = [self._row(prompt.index, prompt.samples.pop()) for _ in range(count)]
        ids = self._take(rows, prompt.logits.expand(count, -1), self._rules_of(rows))
        self._slots.widen(max([*(row.used for row in self._rows), len(request.tokens)]))
        for row, token in zip(rows, ids, strict=True):
            if row.stop_reason is None:
                place = self._ended.pop() if self._ended else len(self._rows)
                self._rows[place : place + 1] = [row]
                self._slots.put(place, prompt.reading, prompt.row, prompt.path)
                self._slots.ids[place] = token

    def _row(self, index: int, sample: int) -> PartialAnswer:
        request, width = self._requests[index], stream_width(self._vocabulary)
        stream = Stream(request, sample, width) if request.sampling.temperature else None
        search = StopSearch(request.stopping, request.tokens)
        return PartialAnswer(AnswerKey(index, sample), request, search, stream, len(request.tokens))

    def _rules_of(self, rows: Sequence[PartialAnswer]) -> Rules | None:
        """Return the sampling settings of rows; None if all are greedy."""
        if all(row.stream is None for row in rows):
            return None
        return Rules.of([row.request.sampling for row in rows], self._engine.device)

    def _advance(self) -> None:
        """Decode one more token of every row."""
        count, slots = len(self._rows), self._slots
        slots.widen(max(row.used for row in self._rows) + 1)
        ids, places = slots.ids[:count, None], slots.places[:count, None]
        columns = torch.arange(slots.width, device=places.device)

        def mask(window: int | None) -> Mask:
            visible: torch.Tensor = columns <= places
            if window is not None:
                visible &= places - columns < window
            return visible[:, None, None]

        hidden = self._engine.body(ids, places, mask, slots)
        logits = self._engine.head.logits(hidden[:, 0])
        slots.ids[:count] = self._take(self._rows, logits, self._rules)
        slots.places[:count] += 1
        for place, row in enumerate(self._rows):
            row.used += 1
            if row.stop_reason is not None:
                self._ended.append(place)

    def _take(
        self, rows: Sequence[PartialAnswer], logits: torch.Tensor, rules: Rules | None
    ) -> torch.Tensor:
        """Choose each row's next token from logits (B, V), and give it to the row."""
        logits = logits[:, : self._vocabulary]
        if self._seen is not None:
            for row, values in zip(rows, logits, strict=True):
                self._seen.setdefault(row.key, []).append(values)
        chosen = choose(logits, rules, [row.stream for row in rows])
        for row, token in zip(rows, chosen.tolist(), strict=True):
            row.take(token)
            if row.stop_reason is not None:
                request = row.request
                answer = request.stopping.answer(request.tokens, row.tokens, row.stop_reason)
                self._finished[row.key] = answer
        return chosen


def generate(
    engine: Engine,
    requests: Sequence[GenerationRequest],
    *,
    vocabulary: int,
    batch: int | None = None,
) -> Iterator[Answers]:
    """Yield answers in parts as they are finished, the longest prompts first.

    If a GPU's memory is exhausted, unfinished answers are decoded again with half the rows, and prompts are
    read in passes of half the tokens.

    Args:
        engine: An engine whose layers are not compiled.
        vocabulary: Number of ids that may be chosen.
        batch: Most rows that are decoded at once; fewer if free memory is for fewer. None: MOST.
    """
    batch = batch or MOST[engine.device.type]
    wanted = {AnswerKey(i, s) for i, request in enumerate(requests) for s in request.samples}
    while wanted:
        decoding = Decoding(engine, requests, wanted, vocabulary, min(batch, len(wanted)))
        for part in decoding.parts():
            wanted -= part.keys()
            yield part
        batch = min(decoding.most, len(wanted))
        del decoding  # frees its memory
        if wanted and batch == 1 and engine.row_tokens < 2 * SMALLEST:
            raise ScoringError(
                "the GPU does not have enough memory for a single answer; lower max_new_tokens, or give "
                "the job a GPU with more memory"
            )
        if wanted:
            torch.cuda.empty_cache()
            log.warning("too little GPU memory for %d answers at once; batch halved", batch)
            batch = max(1, batch // 2)
            if engine.row_tokens >= 2 * SMALLEST:
                engine.row_tokens //= 2  # of prompts that are read at once
