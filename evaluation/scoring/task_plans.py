"""What a task asks of a model: requests that fit the window, and to which question each belongs."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.prefill.caches import TokenizedQuestion
from evaluation.scoring.engine.tries import Ints
from evaluation.scoring.engine.window import Request, fit_requests


@dataclass(frozen=True)
class FitWindow:
    """What requests are fitted to: see `fit_requests`."""

    max_length: int
    prefix_token: int | None
    bos: int | None


@dataclass(frozen=True)
class TaskPlan:
    """Questions by key, and their requests: of each its candidates, then its unconditional ones.

    `truncated` counts contexts.
    """

    keys: Sequence[str]
    ids: Sequence[str]
    candidates: Ints  # (questions,)
    unconditional: Ints  # (questions,)
    truncated: Ints  # (questions,)
    requests: Sequence[Request]


def plan_questions(questions: Mapping[str, TokenizedQuestion], window: FitWindow) -> TaskPlan:
    """Fit the requests of questions into the window.

    Raises:
        ScoringError: When a question cannot be scored; it names the item.
    """
    fit = functools.partial(
        fit_requests, max_length=window.max_length, prefix_token=window.prefix_token, bos=window.bos
    )
    fitted = [fit(_requests(item)) for item in questions.values()]
    return TaskPlan(
        keys=list(questions),
        ids=[item.id for item in questions.values()],
        candidates=np.array([len(item.candidates) for item in questions.values()]),
        unconditional=np.array([len(item.unconditional or ()) for item in questions.values()]),
        truncated=np.array([part.truncated for part in fitted]),
        requests=[request for part in fitted for request in part.requests],
    )


def _requests(item: TokenizedQuestion) -> list[Request]:
    return [
        Request(
            item.contexts[candidate.context].tokens,
            candidate.tokens,
            _name(item.id, place, len(item.candidates)),
        )
        for place, candidate in enumerate((*item.candidates, *(item.unconditional or ())))
    ]


def _name(item: str, place: int, candidates: int) -> str:
    if place < candidates:
        return f"{item}, candidate {place}"
    return f"{item}, unconditional candidate {place - candidates}"
