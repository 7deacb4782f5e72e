"""Generate answers to many prompts by continuous batching; each is the same as if generated alone.

A prompt is prefilled once for all its samples, and a prefix that many prompts share is prefilled once
for all of them. Logits are fp32, as the best two often tie in bf16. Only the tokenizer's ids are
chosen: a padded vocabulary has rows that were never trained.
"""

import logging
import time
from collections.abc import Iterator, Sequence

import torch
from torch.nn.attention import sdpa_kernel
from transformers import PreTrainedModel

from evaluation.errors import NotEnoughMemory, ScoringError
from evaluation.progress import count_answers, progress
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest
from evaluation.scoring.engine.attend import UNPLANNED, attention_by
from evaluation.scoring.engine.busy import working
from evaluation.scoring.engine.faults import gpu_faults
from evaluation.scoring.engine.forward import longest_position
from evaluation.scoring.engine.fused import fused_layers
from evaluation.scoring.engine.generation.kv_cache import (
    ATTENTION,
    DecodingStep,
    PrefillCache,
    Prefix,
    Slots,
)
from evaluation.scoring.engine.generation.memory import MOST, rows_in_memory
from evaluation.scoring.engine.generation.partial_answers import (
    BatchTables,
    PartialAnswer,
    rules_of,
    take_next,
)
from evaluation.scoring.engine.generation.prompts import PrefilledPrompt, PromptQueue
from evaluation.scoring.engine.generation.sampling import Rules, stream_width
from evaluation.scoring.engine.head import Head
from evaluation.scoring.engine.masks import layer_windows

log = logging.getLogger(__name__)

PART_ANSWERS, PART_SECONDS = 128, 30.0
"""Answers and seconds after which a part of the answers is yielded: a killed job loses at most a part."""

Answers = dict[AnswerKey, Answer]


class DecodingBatch:
    """A batch of rows, each of which decodes an answer and is refilled once that ends.

    The index of a row is that of its slot. If there is no answer to refill a row with, the last row moves there.

    Args:
        vocabulary: Number of ids that may be chosen.
        rows: Most rows that are decoded at once; fewer if a GPU's free memory is for fewer.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        requests: Sequence[GenerationRequest],
        wanted: set[AnswerKey],
        *,
        vocabulary: int,
        rows: int,
        device: torch.device,
    ) -> None:
        self._model, self._device = model, device
        self._vocabulary, self._width = vocabulary, stream_width(vocabulary)
        self._head = Head(model.get_output_embeddings())
        windows, config = layer_windows(model.config), model.config
        self._windows = (
            [windows[kind] for kind in config.layer_types]
            if isinstance(windows, dict)
            else [windows] * config.num_hidden_layers
        )
        samples: dict[int, list[int]] = {}
        for index, sample in sorted(wanted):
            samples.setdefault(index, []).append(sample)
        self._queue = PromptQueue(
            requests, samples, self._forward, self._logits, self._windows, device
        )
        self._slots = Slots(rows)
        self._columns = max(
            len(requests[index].tokens) + requests[index].max_new_tokens for index in samples
        )
        self._rows: list[PartialAnswer] = []
        self._ended: list[int] = []  # rows whose slot is free
        self._layout: BatchTables | None = None
        self._finished: Answers = {}

    @property
    def most(self) -> int:
        """Most rows that are decoded at once."""
        return self._slots.rows

    def parts(self) -> Iterator[Answers]:
        """Yield all answers, at least one at a time; end early if memory is exhausted."""
        is_going = True
        while is_going:
            try:
                with (
                    gpu_faults(),
                    torch.inference_mode(),
                    attention_by(self._model, ATTENTION),
                    fused_layers(self._model),
                    sdpa_kernel(UNPLANNED),
                ):
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
        """Put the next prompts' samples into free rows; move the last rows into those that stay free."""
        while self._free() and (prompt := self._queue.next()) is not None:
            self._open(prompt.rest)
            self._begin(prompt, min(self._free(), len(prompt.samples)))
        for place in sorted(self._ended, reverse=True):
            last = self._rows.pop()
            if place < len(self._rows):
                self._move(len(self._rows), place, last.used)
                self._rows[place] = last
        self._ended = []

    def _move(self, origin: int, target: int, used: int) -> None:
        self._slots.move(origin, target, used)

    def _free(self) -> int:
        return self._slots.rows - len(self._rows) + len(self._ended)

    def _open(self, example: Prefix) -> None:
        """Make the slots when the first prompt is read, as many as fit the memory."""
        if self._slots.keys:
            return
        fitting = rows_in_memory(example, self._columns, self._vocabulary)
        self._slots.rows = min(self._slots.rows, fitting or self._slots.rows)
        log.info("decoding %d answers at once", self._slots.rows)
        self._slots.open(example)

    def _begin(self, prompt: PrefilledPrompt, count: int) -> None:
        """Begin some samples of a prompt: their first token follows from the prompt's logits."""
        rows = [PartialAnswer.of(prompt, prompt.samples.pop(), self._width) for _ in range(count)]
        self._take(rows, prompt.logits.expand(count, -1), rules_of(rows, self._head.device))
        for row in rows:
            if not self._has_ended(row):
                self._give_slot(row)

    def _give_slot(self, row: PartialAnswer) -> int:
        self._layout = None
        place = self._ended.pop() if self._ended else len(self._rows)
        self._rows[place : place + 1] = [row]
        self._slots.widen(row.used)
        for part in row.copied:
            self._slots.put(place, part.start - row.start, part)
        row.copied = ()
        return place

    def _has_ended(self, row: PartialAnswer) -> bool:
        if row.stop_reason is None:
            return False
        self._finished[row.key] = row.answer()
        return True

    def _widen(self) -> int:
        """Make room for a token of every row; return the columns that are then needed."""
        needed = max(row.used for row in self._rows) + 1
        self._slots.widen(needed)
        return needed

    def _advance(self) -> None:
        """Decode one more token of every row."""
        self._layout = self._layout or BatchTables(self._rows, self._device, self._head.device)
        self._widen()
        table, step = self._layout.step(self._slots, self._windows)
        hidden = self._forward(table[0, :, None], table[1, :, None], step)[:, 0]
        self._take(self._rows, self._logits(hidden), self._layout.rules)
        self._ended = [place for place, row in enumerate(self._rows) if self._has_ended(row)]
        if self._ended:
            self._layout = None

    def _take(
        self, rows: Sequence[PartialAnswer], logits: torch.Tensor, rules: Rules | None
    ) -> torch.Tensor:
        return take_next(rows, logits, rules, self._width)

    @working
    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return logits (B, V) of hidden states (B, D)."""
        return self._head.logits(hidden)[:, : self._vocabulary]

    @working
    def _forward(
        self, ids: torch.Tensor, positions: torch.Tensor, memory: PrefillCache | DecodingStep
    ) -> torch.Tensor:
        return self._hidden(ids, positions, memory)

    def _hidden(
        self, ids: torch.Tensor, positions: torch.Tensor, memory: PrefillCache | DecodingStep
    ) -> torch.Tensor:
        """Return the last hidden states (B, T, D) of ids (B, T)."""
        hidden: torch.Tensor = self._model.base_model(
            input_ids=ids, position_ids=positions, use_cache=False, memory=memory
        ).last_hidden_state
        return hidden


def generate(
    model: PreTrainedModel,
    requests: Sequence[GenerationRequest],
    *,
    vocabulary: int,
    batch: int | None = None,
    device: str | torch.device,
    batches: type[DecodingBatch] = DecodingBatch,
) -> Iterator[Answers]:
    """Yield answers in parts as they are finished, the longest prompts first.

    If a GPU's memory is exhausted, unfinished answers are decoded again with half the batch size.

    Args:
        vocabulary: Number of ids that may be chosen.
        batch: Most rows that are decoded at once; fewer if a GPU's free memory is for fewer. None: MOST.

    Raises:
        NonFiniteError: When the model returns NaN or infinity; it names the prompt.
        ScoringError: When memory is too small for a single row, or an answer may become too long.
    """
    _check(model, requests)
    device = torch.device(device)
    batch = batch or MOST[device.type]
    wanted = {AnswerKey(i, s) for i, request in enumerate(requests) for s in request.samples}
    with gpu_faults(), progress("answers", len(wanted), "answer") as bar:
        while wanted:
            rows = min(batch, len(wanted))
            decoding = batches(
                model, requests, wanted, vocabulary=vocabulary, rows=rows, device=device
            )
            for part in decoding.parts():
                wanted -= part.keys()
                count_answers(bar, [len(answer.tokens) for answer in part.values()])
                yield part
            batch = decoding.most
            del decoding  # frees its memory
            if wanted:
                batch = _fewer(min(batch, len(wanted)))


def _check(model: PreTrainedModel, requests: Sequence[GenerationRequest]) -> None:
    longest = longest_position(model)
    for request in requests:
        if len(request.tokens) + request.max_new_tokens > longest:
            raise ScoringError(
                f"prompt {request.id}: with its answer it may have more than {longest:.0f} tokens; from "
                "there on this model's rotary embedding depends on the other prompts in the batch; "
                "lower max_new_tokens"
            )


def _fewer(batch: int) -> int:
    if batch == 1:
        raise ScoringError(
            "the GPU does not have enough memory for a single answer; lower max_new_tokens, or give "
            "the job a GPU with more memory"
        )
    torch.cuda.empty_cache()
    log.warning("the GPU does not have enough memory for %d answers at once; batch halved", batch)
    return batch // 2
