"""Compare the logits of answers with the model's own, before the first answer.

The fast way runs a model's body with a cache of this project and one product for the head. A class may
keep a state of its own, scale its logits after the head, or take arguments that are ignored here. Then
it would write other tokens, or draw them at another temperature, without an error.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from evaluation.errors import GpuFault, NonFiniteError, NotEnoughMemory, ScoringError
from evaluation.scoring.answers import AnswerKey, GenerationRequest
from evaluation.scoring.engine.faults import gpu_faults
from evaluation.scoring.engine.generation.generate import DecodingBatch
from evaluation.scoring.engine.generation.partial_answers import PartialAnswer
from evaluation.scoring.engine.generation.plain import plain_answers
from evaluation.scoring.engine.generation.sampling import Rules
from evaluation.scoring.engine.self_check import REFUSALS, compared_logprobs, difference
from evaluation.wording import with_class

NEW = 8
"""Tokens of each answer that is compared."""

SHORT = 40
"""Tokens of the longest prompt, unless it has to exceed a window: long enough for shared prefixes."""


def decoding_fault(
    model: PreTrainedModel,
    device: str | torch.device,
    length: int = SHORT,
    replays: bool = False,
) -> str | None:
    """Return why answers with this project's cache differ from the class's logits; None if they agree.

    Raises:
        NotEnoughMemory: When a GPU's memory is exhausted.
    """
    return _compared(lambda: _fault(model, torch.device(device), max(length, SHORT), replays))


def plain_fault(model: PreTrainedModel, device: str | torch.device) -> str | None:
    """Return why the class's own `generate` differs from its whole forward pass; None if it does not."""
    return _compared(lambda: _plain_fault(model, torch.device(device)))


def _compared(compare: Callable[[], str | None]) -> str | None:
    try:
        with gpu_faults():
            return compare()
    except NonFiniteError:
        return None  # as for any other prompt: generation will name the first one
    except (NotEnoughMemory, GpuFault):
        raise
    except (*REFUSALS, RuntimeError, ScoringError) as error:
        return f"it does not run ({with_class(error)})"


def _plain_fault(model: PreTrainedModel, device: torch.device) -> str | None:
    vocabulary = model.get_input_embeddings().weight.shape[0]
    request = _requests(SHORT, vocabulary)[0]
    seen: list[torch.Tensor] = []
    answers = plain_answers(model, 0, request, vocabulary, device, seen)
    tokens = np.array([*request.tokens, *answers[AnswerKey(0, 0)].tokens[:-1]])
    error, allowed = difference(model, tokens, compared_logprobs(torch.stack(seen), vocabulary))
    if error > allowed:
        return f"the logits with its own cache differ from those without by {error:.1e}"
    return None


def _fault(model: PreTrainedModel, device: torch.device, length: int, replays: bool) -> str | None:
    vocabulary = model.get_input_embeddings().weight.shape[0]
    requests = _requests(length, vocabulary)
    wanted = {AnswerKey(i, s) for i, request in enumerate(requests) for s in request.samples}
    decoding = _Recording(model, requests, wanted, vocabulary, len(wanted), device, replays=replays)
    answers = {key: answer for part in decoding.parts() for key, answer in part.items()}
    if answers.keys() != wanted:
        raise NotEnoughMemory("the GPU does not have enough memory for three answers")
    for index, request in enumerate(requests):
        key = AnswerKey(index, request.samples[-1])
        said = answers[key].tokens
        tokens = np.array([*request.tokens, *said[:-1]])
        error, allowed = difference(model, tokens, np.stack(decoding.seen[key][: len(said)]))
        if error > allowed:
            return (
                f"its own log-probabilities differ from those with this project's cache by {error:.1e} "
                f"(relative L2, at most {allowed:.0e} in {model.dtype})"
            )
    return None


def _requests(length: int, vocabulary: int) -> list[GenerationRequest]:
    """Return two prompts with a common beginning, and one with two samples."""
    tokens = [(1 + place * 7919) % vocabulary for place in range(length)]
    other = [*tokens[: length - 4], *((token + 1) % vocabulary for token in tokens[-4:-1])]
    alone = [(2 + place * 104729) % vocabulary for place in range(SHORT - 5)]
    return [
        GenerationRequest("first", tuple(tokens), NEW),
        GenerationRequest("other", tuple(other), NEW),
        GenerationRequest("alone", tuple(alone), NEW, (0, 1)),
    ]


class _Recording(DecodingBatch):
    """Records the log-probabilities from which each token was chosen, of some ids."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.seen: defaultdict[AnswerKey, list[NDArray[np.float64]]] = defaultdict(list)

    def _take(
        self, rows: Sequence[PartialAnswer], logits: torch.Tensor, rules: Rules | None
    ) -> torch.Tensor:
        logprobs = compared_logprobs(logits[:, : self._vocabulary], self._vocabulary)
        for row, values in zip(rows, logprobs, strict=True):
            self.seen[row.key].append(values)
        return super()._take(rows, logits, rules)
