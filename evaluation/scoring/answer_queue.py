"""Answer what the prompts of a checkpoint lack, of all probes and tasks in one queue.

A batch of answers empties at its end, when the longest are still being written. Were tasks answered one
after the other, it would do so for each; and vLLM would start anew. So items wait (`Waiting`)
until all tiers are scored. What is written is stored by item, some answers at a time.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence

from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.scoring.lacking import Answers, Asked, Waiting
from evaluation.scoring.session import Job
from evaluation.scoring.vllm.engine import Vllm

log = logging.getLogger(__name__)


def answer_lacking(job: Job, waiting: Waiting) -> None:
    """Answer all that waits, by the built-in engine and then by vLLM."""
    theirs = [item for item in waiting.lacking if item.agreement is not None]
    ours = [item for item in waiting.lacking if item.agreement is None]
    compared = [item.compared(is_ours=True) for item in theirs]
    answer(job, [*(item.asked(job) for item in ours), *compared], job.backend.answers)
    if theirs:
        job.backend.unload()
        vllm = Vllm(job)
        asked = [item.asked(job) for item in theirs]
        compared = [item.compared(is_ours=False) for item in theirs]
        answer(job, [*asked, *compared], vllm.answers)
        for item in theirs:
            if item.agreement and item.agreement.stored() is None:
                item.agreement.store(vllm.version)
    for act in waiting.afterwards:
        act()


def answer(job: Job, asked: Sequence[Asked], answers: Callable[..., Iterator[Answers]]) -> None:
    """Answer all requests in one queue, by a backend's `answers`; give each part to its items."""
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
