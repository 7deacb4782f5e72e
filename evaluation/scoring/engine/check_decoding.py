"""Compare the logits of answers with the model's own, before the first answer.

A class may keep a state of its own, which slots do not have, and would then write other tokens.
"""

import numpy as np
import torch

from evaluation.errors import ScoringError
from evaluation.scoring.answers import Answers, GenerationRequest
from evaluation.scoring.engine.check import (
    INSTEAD,
    LAST,
    beyond_window,
    compared,
    difference,
    fault_of,
)
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.generate import Decoding

PROMPT, ANSWER = 40, 8
"""Tokens of prompts, unless they have to exceed a window, and of answers."""


def ensure_decodable(engine: Engine, longest: int) -> None:
    """Compare three answers, once for each length of windows; raise ScoringError where logits differ."""
    length = max(PROMPT, beyond_window(engine.model, longest))
    if ("decoding", length) in engine.checked:
        return
    if fault := fault_of(lambda: _fault(engine, length)):
        raise ScoringError(f"{type(engine.model).__name__} cannot be decoded: {fault}; {INSTEAD}")
    engine.checked.add(("decoding", length))


def _fault(engine: Engine, length: int) -> str | None:
    """Compare three answers to two prompts with a common beginning; the last one refills a slot."""
    vocabulary = engine.vocab_size
    first = [(1 + place * 7919) % vocabulary for place in range(length)]
    other = [*first[: length - 4], *((token + 1) % vocabulary for token in first[-4:-1])]
    requests = {
        "first": GenerationRequest("first", tuple(first), ANSWER),
        "other": GenerationRequest("other", tuple(other), ANSWER - 3),
        "again": GenerationRequest("other", tuple(other), ANSWER - 3),
    }
    decoding, answers = Decoding(engine, requests, vocabulary, most=2), Answers()
    logits: dict[str, list[torch.Tensor]] = {key: [] for key in requests}
    with engine.prepared():
        while decoding.fill():
            for row, values in zip(decoding.rows, decoding.logits, strict=True):
                logits[row.key].append(values)
            answers |= decoding.step()
    for key, answer in answers.items():
        tokens = np.array([*requests[key].tokens, *answer.tokens[:-1]])
        logprobs = torch.stack(logits[key])[-LAST:].double().log_softmax(-1)
        values = logprobs[:, compared(vocabulary)].cpu().numpy()
        if fault := difference(engine.model, tokens, values):
            return fault
    return None
