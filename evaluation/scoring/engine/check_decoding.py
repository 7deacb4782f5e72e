"""Compare the logits of answers with the model's own, before the first answer.

A class may keep a state of its own, which slots do not have, and would then write other tokens.
"""

import numpy as np
import torch

from evaluation.errors import NotEnoughMemory, ScoringError
from evaluation.scoring.answers import AnswerKey, GenerationRequest
from evaluation.scoring.engine.check import LAST, beyond_windows, compared, difference, fault_of
from evaluation.scoring.engine.forward import INSTEAD, Engine
from evaluation.scoring.engine.generate import Decoding

PROMPT, ANSWER = 40, 8
"""Tokens of prompts, unless they have to exceed a window, and of answers."""


def ensure_decodable(engine: Engine, longest: int) -> None:
    """Compare three answers, once for each length of windows; raise ScoringError where logits differ."""
    length = max(PROMPT, beyond_windows(engine.model, longest))
    if length in engine.decodable:
        return
    if fault := fault_of(lambda: _fault(engine, length)):
        raise ScoringError(f"{type(engine.model).__name__} cannot be decoded: {fault}; {INSTEAD}")
    engine.decodable.add(length)


def _fault(engine: Engine, length: int) -> str | None:
    """Compare two prompts with a common beginning, one of them with two samples."""
    vocabulary = engine.vocab_size
    first = [(1 + place * 7919) % vocabulary for place in range(length)]
    other = [*first[: length - 4], *((token + 1) % vocabulary for token in first[-4:-1])]
    requests = [
        GenerationRequest("first", tuple(first), ANSWER),
        GenerationRequest("other", tuple(other), ANSWER, (0, 1)),
    ]
    wanted = {AnswerKey(0, 0), AnswerKey(1, 0), AnswerKey(1, 1)}
    seen: dict[AnswerKey, list[torch.Tensor]] = {}
    decoding = Decoding(engine, requests, wanted, vocabulary, len(wanted), seen)
    answers = {key: answer for part in decoding.parts() for key, answer in part.items()}
    if answers.keys() != wanted:
        raise NotEnoughMemory("the GPU does not have enough memory for three answers")
    for key, answer in answers.items():
        tokens = np.array([*requests[key.request].tokens, *answer.tokens[:-1]])
        logprobs = torch.stack(seen[key])[-LAST:].double().log_softmax(-1)
        values = logprobs[:, compared(vocabulary)].cpu().numpy()
        if fault := difference(engine.model, tokens, values):
            return fault
    return None
