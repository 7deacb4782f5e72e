"""Samples that items lack: what is requested, and how answers become rows of the store."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.session import Job
from evaluation.scoring.stored_completions import COMPLETIONS, STOP, sample_key
from evaluation.scoring.vllm.agreement import Agreement
from evaluation.store import StoredScore

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
    agreement: Agreement | None

    def asked(self, job: Job) -> Asked:
        """Return its requests, whose answers a job stores."""

        def take(answers: Answers, seconds: float) -> None:
            part = completion_table(self.requests, answers, seconds)
            stop = {STOP: list(self.stopping.strings)}
            job.add(self.item, self.key, job.stamped(part, {**part.summary, **stop}))

        return self._asked(self.requests, take)

    def compared(self, is_ours: bool) -> Asked:
        """Return the requests that both engines answer; none if the agreement is measured already."""
        both = self.agreement
        if both is None or both.stored() is not None:
            return Asked(self.name, (), lambda answers, seconds: None)
        return self._asked(both.requests, both.take_ours if is_ours else both.take_theirs)

    def _asked(self, requests: Sequence[GenerationRequest], take: Take) -> Asked:
        return Asked(
            self.name, [replace(request, stopping=self.stopping) for request in requests], take
        )


@dataclass(frozen=True)
class Waiting:
    """What a checkpoint's tiers leave until all of them are scored."""

    lacking: list[Lacking] = field(default_factory=list)
    """Completions that are not stored; they are generated together."""
    afterwards: list[Callable[[], None]] = field(default_factory=list)
    """What is done once they are."""


def sample_keys(requests: Iterable[GenerationRequest]) -> list[str]:
    """Return the key in the store of every sample of requests, whose ids are keys of their prompts."""
    return [sample_key(request.id, n) for request in requests for n in request.samples]


def without(
    stored: Container[str], requests: Iterable[GenerationRequest]
) -> list[GenerationRequest]:
    """Return requests for the samples that are not stored, by `sample_key`."""
    left = (
        (request, tuple(n for n in request.samples if sample_key(request.id, n) not in stored))
        for request in requests
    )
    return [replace(request, samples=samples) for request, samples in left if samples]


def completion_table(
    requests: Sequence[GenerationRequest], answers: Answers, seconds: float
) -> StoredScore:
    """Return a table of COMPLETIONS for answers, with its seconds, and tokens read once and written."""
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
