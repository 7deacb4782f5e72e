"""Generate answers to many prompts at once; each is the same as if it were generated alone.

Prompts are read as packed rows, so that a prefix which they share is read once; their keys and values
are copied into slots, one for each answer, and a slot is refilled when its answer ends. Logits are
float32, as the best two often tie in bfloat16. Only the tokenizer's ids are chosen: a padded vocabulary
has rows that were never trained.

Letters: B rows, V vocabulary.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from transformers import DynamicCache

from evaluation.errors import NonFiniteError
from evaluation.scoring.answers import (
    Answers,
    GenerationRequest,
    Requests,
    StopReason,
    StopSearch,
)
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.gpu import to_device
from evaluation.scoring.engine.packing import PackedRows, key_of
from evaluation.scoring.engine.sampling import choose, stream_of
from evaluation.scoring.engine.slots import Slots, States

log = logging.getLogger(__name__)

PART_SECONDS = 30.0
"""Seconds after which a part of the answers is yielded: a killed job loses at most a part."""

MOST = {"cpu": 64, "cuda": 1024}
"""Most rows by default, by the type of device: a step reads all weights, however many rows it has."""


class PartialAnswer:
    """An answer that is being decoded, with its random numbers."""

    def __init__(self, key: Any, request: GenerationRequest) -> None:
        self.key, self.request, self.tokens = key, request, list[int]()
        self._search = StopSearch(request.stopping, request.tokens)
        self.stream = stream_of(request)

    @property
    def length(self) -> int:
        """Tokens of the prompt and the answer."""
        return len(self.request.tokens) + len(self.tokens)

    def take(self, token: int) -> StopReason | None:
        """Add a token; return why the answer ends, if it does. -1, for NaN, is a NonFiniteError."""
        if token < 0:
            raise NonFiniteError(
                f"prompt {self.request.id}: the model returns NaN or infinite logits for token "
                f"{len(self.tokens) + 1} of its answer; the checkpoint's weights are broken or "
                "overflow in this dtype (set scoring.dtype: float32)"
            )
        if token in self.request.stopping.eos_ids:
            return "eos"
        self.tokens.append(token)
        if self._search.reached(self.tokens):
            return "stop_string"
        return "length" if len(self.tokens) >= self.request.max_new_tokens else None


def read_prompts(engine: Engine, requests: Requests) -> Iterator[tuple[Any, States, torch.Tensor]]:
    """Yield each request's key, the states of its prompt, and the logits (1, V) of its first token.

    A pass reads many prompts, those of the longest rows first, when the first of them is needed.
    """
    samples: dict[tuple[int, ...], list[Any]] = defaultdict(list)
    for key, request in requests.items():
        samples[request.tokens].append(key)
    keys, sequences = [*samples.values()], [(key_of(tokens), key_of([0])) for tokens in samples]
    for batch in engine.batches(PackedRows(sequences, engine.capacity)):
        states = DynamicCache()  # the last one is freed
        hidden = engine.hidden(batch, states)
        logits = engine.head.logits(hidden[to_device(batch.query, engine.device)])
        for place, query in enumerate(batch.query.tolist()):
            row, indices = batch.path(query)
            path = to_device(indices, engine.device)
            of_prompt = [
                (layer.keys[row].index_select(1, path), layer.values[row].index_select(1, path))
                for layer in states.layers
            ]
            for key in keys[batch.owner[place]]:
                yield key, of_prompt, logits[place : place + 1]


class Decoding:
    """Rows that decode an answer each; their places are refilled, or else taken by the last rows.

    All answers have the same temperature, top_k and top_p. At most `most` are decoded at once, fewer if
    free memory is for fewer. The next token of each row is chosen from `logits` (B, V).
    """

    _slots: Slots

    def __init__(self, engine: Engine, requests: Requests, vocabulary: int, most: int) -> None:
        self._engine, self._requests, self._vocabulary = engine, requests, vocabulary
        self._prompts = read_prompts(engine, requests)
        self.most, self.rows = most, list[PartialAnswer]()
        self.logits = torch.empty(0, device=engine.device)

    def fill(self) -> bool:
        """Begin answers in free slots; return whether there is any row."""
        while len(self.rows) < self.most and (prompt := next(self._prompts, None)):
            key, states, logits = prompt
            if not hasattr(self, "_slots"):
                lengths = (len(r.tokens) + r.max_new_tokens for r in self._requests.values())
                self._slots = Slots(self.most, max(lengths), states, self._vocabulary)
                self.most = self._slots.count
                log.info("decoding %d answers at once", self.most)
            self._slots.put(len(self.rows), states)
            self.rows.append(PartialAnswer(key, self._requests[key]))
            logits = logits[:, : self._vocabulary]
            self.logits = torch.cat([self.logits, logits]) if len(self.rows) > 1 else logits
        return bool(self.rows)

    def step(self) -> Answers:
        """Choose each row's next token, return the answers that end, and decode the others."""
        rows, slots, finished = self.rows, self._slots, Answers()
        chosen = choose(self.logits, rows[0].request.sampling, [row.stream for row in rows])
        ended = []
        for place, (row, token) in enumerate(zip(rows, chosen.tolist(), strict=True)):
            if reason := row.take(token):
                tokens = row.request.tokens
                finished[row.key] = row.request.stopping.answer(tokens, row.tokens, reason)
                ended.append(place)
        for place in reversed(ended):
            last = rows.pop()
            if place < len(rows):
                slots.move(len(rows), place, last.length - 1)
                rows[place] = last
        if rows:
            ids = chosen.new_tensor([[row.tokens[-1]] for row in rows])
            places = slots.begin([row.length - 1 for row in rows])
            masks = {kind: slots.mask(window) for kind, window in self._engine.windows.items()}
            hidden = self._engine.body(ids, places, masks, slots)
            self.logits = self._engine.head.logits(hidden[:, 0])[:, : self._vocabulary]
        return finished

    def part(self) -> Answers:
        """Return a part of the answers; none once all are finished."""
        part, until = Answers(), time.monotonic() + PART_SECONDS
        with self._engine.prepared():
            while not part or time.monotonic() < until:
                if not self.fill():
                    break
                part |= self.step()
        return part


def generate(
    engine: Engine, requests: Requests, *, vocabulary: int, batch: int | None = None
) -> Iterator[Answers]:
    """Yield answers in parts as they are finished, the longest prompts first.

    Ids below `vocabulary` may be chosen; the engine's layers must not be compiled.
    """
    batch = batch or MOST[engine.device.type]
    queues: dict[tuple[float, ...], dict[Any, GenerationRequest]] = {}
    for key, request in requests.items():
        rules = request.sampling
        queues.setdefault((rules.temperature, rules.top_k, rules.top_p), {})[key] = request
    for queue in queues.values():
        decoding = Decoding(engine, queue, vocabulary, min(batch, len(queue)))
        while part := decoding.part():
            yield part
