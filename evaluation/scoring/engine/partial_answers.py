"""Keep the partial answers of the batch being decoded, and choose their tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from evaluation.errors import NonFiniteError
from evaluation.scoring.answers import AnswerKey, GenerationRequest, StopReason, StopSearch
from evaluation.scoring.engine.sampling import Rules, Stream, choose, stream_width


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

    @classmethod
    def of(cls, key: AnswerKey, request: GenerationRequest, vocabulary: int) -> "PartialAnswer":
        """Begin an answer to a request."""
        width = stream_width(vocabulary)
        stream = Stream(request, key.sample, width) if request.sampling.temperature else None
        search = StopSearch(request.stopping, request.tokens)
        return cls(key, request, search, stream, len(request.tokens))

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


def rules_of(rows: Sequence[PartialAnswer], device: torch.device) -> Rules | None:
    """Return the sampling settings of rows; None if all rows are greedy."""
    if all(row.stream is None for row in rows):
        return None
    return Rules.of([row.request.sampling for row in rows], device)


def next_tokens(
    rows: Sequence[PartialAnswer], logits: torch.Tensor, rules: Rules | None
) -> torch.Tensor:
    """Choose each row's next token from logits (B, V); -1 for NaN or infinity."""
    if rules is None:
        return choose(logits, None, None)
    drawn = np.zeros((len(rows), stream_width(logits.shape[1])))
    for index, row in enumerate(rows):
        if row.stream is not None:
            drawn[index] = row.stream.next()
    return choose(logits, rules, torch.from_numpy(drawn).to(logits.device))
