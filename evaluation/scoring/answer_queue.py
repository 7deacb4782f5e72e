"""Answer what the prompts of a checkpoint lack, of all probes and tasks in one queue.

A batch of answers empties at its end, when the longest are still being written. Were tasks answered one
after the other, it would do so for each; and vLLM would start anew. So items wait in `Job.lacking`
until all tiers are scored. What is written is stored by item, some answers at a time.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.session import Job
from evaluation.scoring.stored_completions import COMPLETIONS, STOP, sample_key
from evaluation.scoring.vllm.engine import Vllm
from evaluation.store import StoredScore

if TYPE_CHECKING:
    from evaluation.scoring.vllm.agreement import Agreement

log = logging.getLogger(__name__)

Answers = dict[AnswerKey, Answer]
Take = Callable[[Answers, float], None]


@dataclass(frozen=True)
class Asked:
    """Requests of one item, and what takes their answers, some at a time with the seconds they took."""

    name: str
    requests: Sequence[GenerationRequest]
    take: Take


@dataclass(frozen=True)
class Lacking:
    """Samples that an item lacks; vLLM writes them if its agreement on the item is measured."""

    name: str
    item: str
    """The item's name in the store."""
    key: Mapping[str, Any]
    requests: Sequence[GenerationRequest]
    stopping: Stopping
    agreement: "Agreement | None"

    def asked(self, job: Job) -> Asked:
        """Return its requests, whose answers a job stores."""

        def take(answers: Answers, seconds: float) -> None:
            part = completion_table(self.requests, answers, seconds)
            stop = {STOP: list(self.stopping.strings)}
            job.add(self.item, self.key, job.stamped(part, {**part.summary, **stop}))

        return self._asked(self.requests, take)

    def compared(self, is_ours: bool) -> Asked:
        """Return the requests that both engines answer.

        Args:
            is_ours: Whether the built-in engine answers them.

        Returns:
            The requests; none if the agreement is measured already.
        """
        both = self.agreement
        if both is None or both.stored() is not None:
            return Asked(self.name, (), lambda answers, seconds: None)
        return self._asked(both.requests, both.take_ours if is_ours else both.take_theirs)

    def _asked(self, requests: Sequence[GenerationRequest], take: Take) -> Asked:
        return Asked(self.name, [replace(one, stopping=self.stopping) for one in requests], take)


def answer_lacking(job: Job) -> None:
    """Answer all that waits in `job.lacking`, by the built-in engine and then by vLLM."""
    lacking, job.lacking = job.lacking, []
    theirs = [item for item in lacking if item.agreement is not None]
    ours = [item.asked(job) for item in lacking if item.agreement is None]
    _answer(job, [*ours, *(item.compared(is_ours=True) for item in theirs)], job.backend.answers)
    if theirs:
        job.backend.unload()
        vllm = Vllm(job)
        asked = [item.asked(job) for item in theirs]
        compared = [item.compared(is_ours=False) for item in theirs]
        _answer(job, [*asked, *compared], vllm.answers)
        for item in theirs:
            if item.agreement and item.agreement.stored() is None:
                item.agreement.store(vllm.version)
    for act in job.at_end:
        act()


def _answer(
    job: Job,
    asked: Sequence[Asked],
    answers: Callable[..., Iterator[Answers]],
) -> None:
    """Answer all requests in one queue; give each part of the answers to their items."""
    owners = [(item, place) for item in asked for place in range(len(item.requests))]
    if not owners:
        return
    requests = [item.requests[place] for item, place in owners]
    names = ", ".join(dict.fromkeys(item.name for item, _ in owners))
    log.info("%d prompts in one queue: %s", len(requests), names)
    with job.naming(names):
        parts = answers(requests, vocabulary=stage_tokenizer(job.plan).rows)
        start = time.perf_counter()  # after the model is loaded
        for part in parts:
            seconds = time.perf_counter() - start
            total = sum(len(answer.tokens) + 1 for answer in part.values())
            by_item: dict[int, tuple[Asked, Answers]] = {}
            for key, answer in part.items():
                item, place = owners[key.request]
                by_item.setdefault(id(item), (item, {}))[1][key._replace(request=place)] = answer
            for item, its in by_item.values():
                share = sum(len(answer.tokens) + 1 for answer in its.values()) / total
                item.take(its, seconds * share)
            start = time.perf_counter()


def completion_table(
    requests: Sequence[GenerationRequest], answers: Answers, seconds: float
) -> StoredScore:
    """Return a table of COMPLETIONS for some answers.

    Args:
        requests: All requests of an item; the answers' keys hold indices of them.

    Returns:
        The table, with its seconds and its tokens read (each prompt once) and written.
    """
    rows = [
        {
            "key": sample_key(requests[key.request].id, key.sample),
            "text": answer.raw,
            "stop_reason": answer.stop_reason,
            "prompt_tokens": len(requests[key.request].tokens),
            "completion_tokens": len(answer.tokens),
            "tokens": list(answer.tokens),
        }
        for key, answer in answers.items()
    ]
    read = {key.request: len(requests[key.request].tokens) for key in answers}
    written = sum(len(answer.tokens) for answer in answers.values())
    spent = {"seconds": seconds, "tokens_processed": sum(read.values()) + written}
    return StoredScore(pa.Table.from_pylist(rows, schema=COMPLETIONS), spent)
