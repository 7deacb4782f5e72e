"""Verdicts on completions: by verifiers of ours in processes, by providers in batches."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from evaluation.files import fingerprint
from evaluation.prefill.generation.provided import limits_of
from evaluation.providers.program import Provider
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
    provided: dict[tuple[str, str, str], list[int]] = {}
    for number, (judge, document, text) in enumerate(jobs):
        if isinstance(judge, Provided):
            key = (judge.provider, judge.version, judge.task)
            provided.setdefault(key, []).append(number)
        else:
            own.append((number, (judge, document, text)))
    for place, verdict in _verified(plan, [job for _, job in own]):
        yield own[place][0], verdict
    for (name, version, task), numbers in provided.items():
        python = plan.config.providers.python(name)
        provider = Provider(name, python, version, plan.nltk_data)
        yield from _provided(plan, provider, task, {number: jobs[number] for number in numbers})


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
    plan: StagePlan, provider: Provider, task: str, jobs: Mapping[int, Job]
) -> Iterator[tuple[int, Verdict]]:
    """Each completion is judged once for all of its metrics."""
    asked: dict[str, list[int]] = {}
    for number, (_, document, text) in jobs.items():
        if (verdict := too_long(text)) is not None:
            yield number, verdict
            continue
        asked.setdefault(fingerprint([document, text]), []).append(number)
    groups = list(asked.values())
    parts = [groups[start : start + PART] for start in range(0, len(groups), PART)]

    def judge(part: list[list[int]]) -> list[Outcome]:
        cases: list[Case] = [jobs[numbers[0]][1:] for numbers in part]
        return [one for _, one in score(provider, {"task": task}, cases, limits_of(plan))]

    with ThreadPoolExecutor(_workers(plan)) as pool:
        for part, outcomes in zip(parts, pool.map(judge, parts), strict=True):
            for numbers, outcome in zip(part, outcomes, strict=True):
                for number in numbers:
                    yield number, _verdict(jobs[number], outcome)


def _verdict(job: Job, outcome: Outcome) -> Verdict:
    judge, _, text = job
    assert isinstance(judge, Provided)
    return storable(verdict_of(judge.metric, outcome, text))
