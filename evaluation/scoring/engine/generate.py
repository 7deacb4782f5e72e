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
from dataclasses import dataclass

import numpy as np
import torch

from evaluation.errors import NotEnoughMemory, ScoringError
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.gpu import gpu_faults
from evaluation.scoring.engine.masks import Mask
from evaluation.scoring.engine.partial_answers import PartialAnswer, next_tokens, rules_of
from evaluation.scoring.engine.sampling import Rules
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


class Decoding:
    """Rows that decode an answer each, and are refilled once that ends.

    If there is no answer to refill a row with, the last row moves there.

    Args:
        vocabulary: Number of ids that may be chosen.
        rows: Most rows that are decoded at once; fewer if free memory is for fewer.
        seen: Gets the logits (V,) from which each token was chosen.
    """

    _slots: Slots
    _rules: Rules | None

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
        self._is_open, self._ready = False, list[PrefilledPrompt]()
        self._rows, self._ruled = list[PartialAnswer](), list[PartialAnswer]()
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
            self._fill()
            if not self._rows:
                return False
            self._advance()
        return True

    def _fill(self) -> None:
        """Begin samples in free rows; move the last rows into those that stay free."""
        while (free := self.most - len(self._rows) + len(self._ended)) > 0:
            while self._ready and not self._ready[-1].samples:
                self._ready.pop()
            if not self._ready and not self._unread:
                break
            if not self._ready:
                self._read([self._packed.row(i) for i in self._unread.pop()])
                continue
            self._begin(self._ready[-1], min(free, len(self._ready[-1].samples)))
        for place in sorted(self._ended, reverse=True):
            last = self._rows.pop()
            if place < len(self._rows):
                self._slots.move(len(self._rows), place, last.used)
                self._rows[place] = last
        self._ended = []

    def _read(self, rows: Sequence[PackedRow]) -> None:
        """Read the prompts of some rows in one pass; the longest is begun first."""
        batch, reading = self._engine.collate(rows, is_text=False), PrefillCache()
        hidden = self._engine.hidden(batch, reading).flatten(0, 1)
        logits = self._engine.head.logits(hidden.index_select(0, batch.query.to(hidden.device)))
        if not logits.isfinite().all() and len(batch.owner) > 1:  # one breaks its whole row
            for alone in [row.alone(owner) for row in rows for owner in row.owner.tolist()]:
                self._read([alone])
            return
        place = np.divmod(batch.query[batch.pair].numpy(), batch.tokens.shape[1])
        for owner, row, query, pair in zip(batch.owner, *place, batch.pair.tolist(), strict=True):
            path = torch.from_numpy(batch.rows[row].before(query)).to(hidden.device)
            index = self._order[owner]
            prompt = PrefilledPrompt(
                index, self._samples[index], reading, int(row), path, logits[pair]
            )
            self._ready.append(prompt)
        self._ready.sort(key=lambda prompt: self._length(prompt.index))
        if not self._is_open:
            columns = max(map(self._length, self._order))
            self.most = min(self.most, rows_in_memory(reading, columns, self._vocabulary))
            log.info("decoding %d answers at once", self.most)
            self._slots, self._is_open = Slots(self.most, reading), True

    def _length(self, index: int) -> int:
        return len(self._requests[index].tokens) + self._requests[index].max_new_tokens

    def _begin(self, prompt: PrefilledPrompt, count: int) -> None:
        """Begin some samples of a prompt: their first token follows from the prompt's logits."""
        request = self._requests[prompt.index]
        keys = [AnswerKey(prompt.index, prompt.samples.pop()) for _ in range(count)]
        rows = [PartialAnswer.of(key, request, self._vocabulary) for key in keys]
        ids = self._take(rows, prompt.logits.expand(count, -1), rules_of(rows, self._engine.device))
        self._slots.widen(max([*(row.used for row in self._rows), len(request.tokens)]))
        for row, token in zip(rows, ids, strict=True):
            if row.stop_reason is None:
                place = self._ended.pop() if self._ended else len(self._rows)
                self._rows[place : place + 1] = [row]
                self._slots.put(place, prompt.reading, prompt.row, prompt.path)
                self._slots.ids[place] = token

    def _advance(self) -> None:
        """Decode one more token of every row."""
        count, slots = len(self._rows), self._slots
        slots.widen(max(row.used for row in self._rows) + 1)
        if self._ruled != self._rows:
            self._ruled = list(self._rows)
            self._rules = rules_of(self._ruled, self._engine.device)
        ids, places = slots.ids[:count, None], slots.places[:count, None]
        columns = torch.arange(slots.width, device=places.device)

        def mask(window: int | None) -> Mask:
            visible: torch.Tensor = columns <= places
            if window is not None:
                visible &= places - columns < window
            return visible[:, None, None]

        hidden = self._engine.body(ids, places, mask, slots)
        slots.ids[:count] = self._take(
            self._rows, self._engine.head.logits(hidden[:, 0]), self._rules
        )
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
        chosen = next_tokens(rows, logits, rules)
        for row, token in zip(rows, chosen.tolist(), strict=True):
            row.take(token)
            if row.stop_reason is not None:
                stopping = row.request.stopping
                answer = stopping.answer(row.request.tokens, row.tokens, row.stop_reason)
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

    If a GPU's memory is exhausted, unfinished answers are decoded again with half the batch size.

    Args:
        engine: An engine whose layers are not compiled.
        vocabulary: Number of ids that may be chosen.
        batch: Most rows that are decoded at once; fewer if free memory is for fewer. None: MOST.

    Raises:
        NonFiniteError: When the model returns NaN or infinity; it names the prompt.
        ScoringError: When memory is too small for a single row, or an answer may become too long.
    """
    for request in requests:
        if len(request.tokens) + request.max_new_tokens > engine.longest:
            raise ScoringError(
                f"prompt {request.id}: with its answer it may have more than {engine.longest:.0f} tokens; "
                "from there on this model's rotary embedding depends on the other prompts in the batch; "
                "lower max_new_tokens"
            )
    batch = batch or MOST[engine.device.type]
    wanted = {AnswerKey(i, s) for i, request in enumerate(requests) for s in request.samples}
    with gpu_faults():
        while wanted:
            decoding = Decoding(engine, requests, wanted, vocabulary, min(batch, len(wanted)))
            for part in decoding.parts():
                wanted -= part.keys()
                yield part
            batch = min(decoding.most, len(wanted))
            del decoding  # frees its memory
            if wanted and batch == 1:
                raise ScoringError(
                    "the GPU does not have enough memory for a single answer; lower max_new_tokens, or "
                    "give the job a GPU with more memory"
                )
            if wanted:
                torch.cuda.empty_cache()
                log.warning(
                    "the GPU does not have enough memory for %d answers at once; batch halved",
                    batch,
                )
                batch //= 2
