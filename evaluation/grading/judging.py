"""Verdicts on completions: by verifiers of ours in processes, by providers in batches."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from evaluation.files import fingerprint
from evaluation.prefill.provided import limits_of, provider_of, scoring_request
from evaluation.providers.score import Case, Outcome, score, verdict_of
from evaluation.settings.plan import StagePlan
from evaluation.settings.verifiers import Judge, Provided, Verifier
from evaluation.verification.pool import storable, too_long, verify_all
from evaluation.verification.verdicts import Verdict

Job = tuple[Judge, Mapping[str, Any], str]
"""A verifier's settings, the prompt's document, and a completion cut at its stops."""

PART = 2000
"""Completions that a provider's program judges at most: its verdicts are kept when it is done."""


def judge_all(plan: StagePlan, jobs: Sequence[Job]) -> Iterator[tuple[int, Verdict]]:
    """Yields (number of the job, verdict) as they come; raises like `verify_all` and `score`."""
    own: list[tuple[int, tuple[Verifier, Mapping[str, Any], str]]] = []
    provided: dict[Provided, list[int]] = {}
    for number, (judge, document, text) in enumerate(jobs):
        if isinstance(judge, Provided):
            provided.setdefault(judge.model_copy(update={"metric": ""}), []).append(number)
        else:
            own.append((number, (judge, document, text)))
    for place, verdict in _verified(plan, [job for _, job in own]):
        yield own[place][0], verdict
    for asked, numbers in provided.items():
        yield from _provided(plan, asked, {number: jobs[number] for number in numbers})


def _workers(plan: StagePlan) -> int:
    return plan.config.verification.workers or len(os.sched_getaffinity(0))


def _verified(
    plan: StagePlan, jobs: Sequence[tuple[Verifier, Mapping[str, Any], str]]
) -> Iterator[tuple[int, Verdict]]:
    how = plan.config.verification
    return verify_all(
        jobs,
        workers=_workers(plan),
        seconds=how.seconds,
        memory_mb=how.memory_mb,
        nltk_data=plan.nltk_data,
        total=len(jobs),
        kinds=frozenset(verifier.kind for verifier, _, _ in jobs),
    )


def _provided(
    plan: StagePlan, task: Provided, jobs: Mapping[int, Job]
) -> Iterator[tuple[int, Verdict]]:
    """Each completion is judged once for all metrics of a task."""
    alike: dict[str, list[int]] = {}
    for number, (_, document, text) in jobs.items():
        if (verdict := too_long(text)) is not None:
            yield number, verdict
            continue
        alike.setdefault(fingerprint([document, text]), []).append(number)
    groups = list(alike.values())
    parts = [groups[start : start + PART] for start in range(0, len(groups), PART)]

    provider, request = provider_of(plan, task), scoring_request(task)

    def judge(part: list[list[int]]) -> list[Outcome]:
        cases: list[Case] = [jobs[numbers[0]][1:] for numbers in part]
        return [one for _, one in score(provider, request, cases, limits_of(plan))]

    with ThreadPoolExecutor(_workers(plan)) as pool:
        for part, outcomes in zip(parts, pool.map(judge, parts), strict=True):
            for numbers, outcome in zip(part, outcomes, strict=True):
                for number in numbers:
                    yield number, _verdict(jobs[number], outcome)


def _verdict(job: Job, outcome: Outcome) -> Verdict:
    judge, _, text = job
    assert isinstance(judge, Provided)
    return storable(verdict_of(judge.metric, outcome, text))
