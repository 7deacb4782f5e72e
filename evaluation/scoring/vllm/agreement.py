"""Measure how often vLLM's greedy answers to a task equal those of the built-in engine.

Two engines round differently, so greedy answers differ where two tokens nearly tie. The same run
measures how often they differ on a few prompts of each task, and stores it with the results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from evaluation.scoring.answers import GREEDY, Answer, AnswerKey, GenerationRequest
from evaluation.scoring.session import Job
from evaluation.store import StoredScore

PROMPTS = 8
"""Number of a task's prompts that both engines answer."""

TOKENS = 64
"""Largest number of tokens of such an answer."""

Answers = dict[AnswerKey, Answer]


class Agreement:
    """The agreement of both engines on one task; it is stored under the key of the task's completions.

    Args:
        requests: All requests of the task; both engines answer the first ones, greedily.
    """

    def __init__(
        self, job: Job, task: str, key: Mapping[str, Any], requests: Sequence[GenerationRequest]
    ) -> None:
        self._job = job
        self.requests = [
            replace(
                request,
                samples=(0,),
                sampling=GREEDY,
                max_new_tokens=min(request.max_new_tokens, TOKENS),
            )
            for request in requests[:PROMPTS]
        ]
        self._item = f"agreement-{task}"
        self._key = {**key, "asked": [request.id for request in self.requests], "tokens": TOKENS}
        self._ours, self._theirs, self._seconds = Answers(), Answers(), 0.0

    @property
    def name(self) -> str:
        """Name of the file in which the agreement is or will be stored."""
        found = self._job.store.find(self._item, self._key)
        return found or self._job.store.path(self._item, self._key).name

    def stored(self) -> dict[str, Any] | None:
        """Return the agreement that was measured before.

        Returns:
            The engine's name and version, the number of greedy answers that both gave, and how many
            are equal; None if it has not been measured.
        """
        recorded = self._job.store.read(self.name)
        if not recorded:
            return None
        return {key: recorded.summary[key] for key in ("name", "version", "asked", "equal")}

    def take_ours(self, answers: Answers, seconds: float) -> None:
        """Take some answers of the built-in engine."""
        self._ours |= answers
        self._seconds += seconds

    def take_theirs(self, answers: Answers, _: float) -> None:
        """Take some answers of vLLM."""
        self._theirs |= answers

    def store(self, version: str | None) -> None:
        """Store how many of the answers are equal."""
        equal = sum(self._theirs[key].text == one.text for key, one in self._ours.items())
        summary = {"name": "vllm", "version": version, "asked": len(self._ours), "equal": equal}
        score = StoredScore(pa.table({}), summary)
        self._job.store.put(
            self._item, self._key, self._job.stamped(score, {"seconds": self._seconds})
        )
