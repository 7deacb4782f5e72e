"""Generate answers to many prompts by continuous batching; each is the same as if generated alone.

A prompt is prefilled once for all its samples, and a prefix that many prompts share is prefilled once
for all of them; their keys and values are then copied into each row's slot. Logits are fp32, as the
best two often tie in bf16. Only the tokenizer's ids are chosen: a padded vocabulary has rows that were
never trained.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

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
from evaluation.scoring.engine.generation.graphs import Graphs, StepShape
from evaluation.scoring.engine.generation.kv_cache import (
    ATTENTION,
    DecodingStep,
    PrefillCache,
    Prefix,
    Slots,
)
from evaluation.scoring.engine.generation.memory import MOST, rows_in_memory
from evaluation.scoring.engine.generation.partial_answers import (
    PartialAnswer,
    next_tokens,
    rules_of,
)
from evaluation.scoring.engine.generation.prompts import PrefilledPrompt, PromptQueue
from evaluation.scoring.engine.generation.sampling import Rules, stream_width
from evaluation.scoring.engine.head import Head, HostCopy
from evaluation.scoring.engine.masks import windows_by_layer

log = logging.getLogger(__name__)

PART_ANSWERS, PART_SECONDS = 128, 30.0
"""Answers and seconds after which a part of the answers is yielded: a killed job loses at most a part."""

Answers = dict[AnswerKey, Answer]


class DecodingBatch:
    """A batch of rows, each of which decodes an answer and is refilled once that ends.

    The index of a row is that of its slot. If there is no answer to refill a row with, the last row
    moves there.

    Args:
        vocabulary: Number of ids that may be chosen.
        rows: Most rows that are decoded at once; fewer if free memory is for fewer.
        replays: Whether steps are captured and replayed, with numbers of rows that are rounded up to a
            few. Each token goes into the next step on the device; the host reads it while that step
            runs. So an answer that has ended is decoded for one more step, to no effect.
    """

    _slots: Slots
    _rules: Rules | None

    def __init__(
        self,
        model: PreTrainedModel,
        requests: Sequence[GenerationRequest],
        wanted: set[AnswerKey],
        vocabulary: int,
        rows: int,
        device: torch.device,
        *,
        replays: bool,
    ) -> None:
        self._model, self._device, self._replays = model, device, replays
        self._vocabulary, self._width = vocabulary, stream_width(vocabulary)
        self._windows = windows_by_layer(model.config)
        samples: dict[int, list[int]] = {}
        for index, sample in sorted(wanted):
            samples.setdefault(index, []).append(sample)
        self._head = Head(model.get_output_embeddings())
        # Not a method, which would refer to this batch: its memory has to be free once it is forgotten.
        self._hidden = partial(_last_hidden, model)
        run = working(self._hidden), working(self._head.logits)
        self._queue = PromptQueue(requests, samples, *run, self._windows, device)
        self._columns = max(
            len(requests[index].tokens) + requests[index].max_new_tokens for index in samples
        )
        self.most = rows
        self._is_open = False
        self._graphs = Graphs(replays)
        self._rows: list[PartialAnswer] = []
        self._ended: list[int] = []  # rows whose slot is free
        self._ruled: list[PartialAnswer] = []  # rows that the rules are for
        self._unread: deque[tuple[Sequence[PartialAnswer], HostCopy]] = deque()
        self._finished: Answers = {}

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
            if not self._is_open:
                self._open(prompt.rest)
            self._begin(prompt, min(self._free(), len(prompt.samples)))
        for place in sorted(self._ended, reverse=True):
            last = self._rows.pop()
            if place < len(self._rows):
                self._slots.move(len(self._rows), place, last.used)
                self._rows[place] = last
        self._ended = []

    def _free(self) -> int:
        return self.most - len(self._rows) + len(self._ended)

    def _open(self, example: Prefix) -> None:
        """Make the slots, as many as fit the memory, from the first prompt."""
        self.most = min(self.most, rows_in_memory(example, self._columns, self._vocabulary))
        log.info("decoding %d answers at once", self.most)
        self._slots, self._is_open = Slots(self.most, example), True

    def _begin(self, prompt: PrefilledPrompt, count: int) -> None:
        """Begin some samples of a prompt: their first token follows from the prompt's logits."""
        rows = [
            PartialAnswer.of(prompt.index, prompt.request, prompt.samples.pop(), self._width)
            for _ in range(count)
        ]
        rules = rules_of(rows, self._head.device)
        ids = self._take(rows, prompt.logits.expand(count, -1), rules)
        self._slots.widen(rows[0].used)
        for row, token in zip(rows, ids, strict=True):
            if row.stop_reason is None:
                place = self._ended.pop() if self._ended else len(self._rows)
                self._rows[place : place + 1] = [row]
                self._slots.put(place, [prompt.stem, prompt.rest], token)

    def _advance(self) -> None:
        """Decode one more token of every row."""
        count = len(self._rows)
        width = self._slots.widen(max(row.used for row in self._rows) + 1)
        rows = min(1 << (count - 1).bit_length(), self.most) if self._replays else count
        if self._ruled != self._rows:
            self._ruled = list(self._rows)
            self._rules = rules_of(self._ruled, self._head.device)
        logits = self._computed(rows, width)[:count]
        self._slots.ids[:count] = self._take(self._ruled, logits, self._rules)
        self._slots.places[:count] += 1
        for row in self._rows:
            row.used += 1
        self._read(1)
        self._ended = [place for place, row in enumerate(self._rows) if row.stop_reason]

    def _take(
        self, rows: Sequence[PartialAnswer], logits: torch.Tensor, rules: Rules | None
    ) -> torch.Tensor:
        """Choose tokens, and begin to copy them to the host; return ids that the next step can read."""
        chosen = next_tokens(rows, logits[:, : self._vocabulary], rules, self._width)
        self._unread.append((rows, HostCopy(chosen)))
        if not self._replays:
            self._read(0)
        return chosen.clamp(min=0).to(self._device)  # -1 stands for NaN

    def _read(self, left: int) -> None:
        """Give rows the tokens that were chosen, but for the last few choices."""
        while len(self._unread) > left:
            rows, copy = self._unread.popleft()
            for row, token in zip(rows, copy.wait()[0].tolist(), strict=True):
                if row.stop_reason is None:
                    row.take(token)
                    if row.stop_reason is not None:
                        self._finished[row.key] = row.answer()

    @working
    def _computed(self, rows: int, width: int) -> torch.Tensor:
        shape = StepShape(rows, width, self._slots.version)
        return self._graphs.run(shape, lambda: self._step(rows, width))

    def _step(self, rows: int, width: int) -> torch.Tensor:
        """Return logits (B, V) after the rows' tokens, from the slots alone."""
        ids, places = self._slots.ids[:rows, None], self._slots.places[:rows, None]
        step = DecodingStep(self._slots, rows, width, self._windows)
        return self._head.logits(self._hidden(ids, places, step)[:, 0])


def _last_hidden(
    model: PreTrainedModel,
    ids: torch.Tensor,
    positions: torch.Tensor,
    memory: PrefillCache | DecodingStep,
) -> torch.Tensor:
    """Return the last hidden states (B, T, D) of ids (B, T)."""
    hidden: torch.Tensor = model.base_model(
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
    replays: bool = False,
) -> Iterator[Answers]:
    """Yield answers in parts as they are finished, the longest prompts first.

    If a GPU's memory is exhausted, unfinished answers are decoded again with half the batch size.

    Args:
        vocabulary: Number of ids that may be chosen.
        batch: Most rows that are decoded at once; fewer if free memory is for fewer. None: MOST.
        replays: Whether steps are replayed as CUDA graphs.

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
            decoding = DecodingBatch(
                model, requests, wanted, vocabulary, rows, device, replays=replays
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
