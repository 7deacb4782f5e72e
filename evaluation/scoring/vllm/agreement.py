"""Measure how often vLLM's greedy answers to a task equal those of the built-in engine.

Two engines round differently, so greedy answers differ where two tokens nearly tie. The same run
measures how often they differ on a few prompts of each task, and stores it with the results.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from evaluation.scoring.answers import GREEDY, Answer, AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.session import Job
from evaluation.scoring.vllm.engine import Vllm
from evaluation.store import StoredScore

PROMPTS = 8
"""Number of a task's prompts that both engines answer."""

TOKENS = 64
"""Largest number of tokens of such an answer."""

Answers = dict[AnswerKey, Answer]


class Agreement:
    """The agreement of both engines on one task; it is stored under the key of the task's completions.

    Args:
        job: The checkpoint and its stage's settings.
        task: The task's name in the suite.
        key: Key of the task's completions.
        requests: All requests of the task; both engines answer the first ones, greedily.
    """

    def __init__(
        self, job: Job, task: str, key: Mapping[str, Any], requests: Sequence[GenerationRequest]
    ) -> None:
        self._job = job
        self._both = [
            replace(
                one, samples=(0,), sampling=GREEDY, max_new_tokens=min(one.max_new_tokens, TOKENS)
            )
            for one in requests[:PROMPTS]
        ]
        self._item = f"agreement-{task}"
        self._key = {**key, "asked": [one.id for one in self._both], "tokens": TOKENS}

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
        found = self._job.store.read(self.name)
        if not found:
            return None
        return {key: found.summary[key] for key in ("name", "version", "asked", "equal")}

    def measured(
        self, requests: Sequence[GenerationRequest], stopping: Stopping, vocabulary: int
    ) -> Iterator[Answers]:
        """Yield vLLM's answers; measure and store the agreement unless it is stored.

        Args:
            requests: Prompts, and the indices of their samples.
            stopping: The rules for ending an answer.
            vocabulary: Number of ids that may be chosen.

        Yields:
            Answers to the requests, in parts as they are finished.
        """
        job = self._job
        both = [] if self.stored() is not None else self._both
        job.backend.unload()
        vllm = Vllm(job)
        count, theirs = len(requests), Answers()
        for part in vllm.answers([*requests, *both], stopping, vocabulary=vocabulary):
            theirs |= part
            if requested := {key: one for key, one in part.items() if key.request < count}:
                yield requested
        if both:
            start, ours = time.perf_counter(), Answers()
            for part in job.backend.answers(both, stopping, vocabulary=vocabulary):
                ours |= part
            equal = sum(
                theirs[key._replace(request=key.request + count)].text == one.text
                for key, one in ours.items()
            )
            summary = {"name": "vllm", "version": vllm.version, "asked": len(ours), "equal": equal}
            score = StoredScore(pa.table({}), summary)
            spent = {"seconds": time.perf_counter() - start}
            job.store.put(self._item, self._key, job.stamped(score, spent))
