"""Tier5: a task's stored completions, cut, verified and counted.

A task has a folder `generation/<task>/` with these files:

completions.jsonl   a line per sample: prompt, completion, how it ended
results.jsonl       the same with each verifier's verdict
summary.json        the task's part of tier5_verified.json
pass_at_k.json      pass@k by verifier, where there are several samples
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from evaluation.files import write_json, write_jsonl
from evaluation.grading.completions import (
    SampledPrompt,
    VerifiedSample,
    prompt_units,
    summarize_task,
)
from evaluation.grading.verdicts import AnswerJob, check_errors, find_verdicts
from evaluation.prefill.caches import (
    DocumentLine,
    PromptCache,
    check_cached_golds,
    read_documents,
    read_prompts,
)
from evaluation.results.kinds import Units
from evaluation.results.verified_files import FOLDER, RESULTS
from evaluation.scoring.stored_completions import StoredCompletion, counted_completions, sample_key
from evaluation.settings.generation import CompletionTask
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import settled_task
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore
from evaluation.verification.thinking import answer_part
from evaluation.verification.verdicts import Verdict, unless_unfinished

Sample = tuple[str, int, StoredCompletion]
"""A prompt's id, the index of one of its samples, and the completion."""


@dataclass(frozen=True)
class VerifiedTask:
    """A task's entry of the tier's file, its prompts, its files, and the summaries of its scores."""

    summary: dict[str, Any]
    units: Units
    files: Mapping[str, Callable[[Path], object]]
    scores: Sequence[Mapping[str, Any]]


def verify_task(
    plan: StagePlan, store: ScoreStore, name: str, entry: Mapping[str, Any]
) -> VerifiedTask:
    """Verify a task's completions and summarize them.

    Args:
        entry: The task's entry of the job's record.

    Raises:
        ScoringError: A completion is not stored, or too many could not be verified.
        CacheError: The task's documents are missing.
    """
    folder = plan.cache_folder("tier5", name)
    cache, documents = read_prompts(folder), read_documents(folder)
    task = settled_task(plan.suite.generation_tasks[name], cache.meta)
    check_cached_golds(plan, name)
    keys = {
        (prompt, index): sample_key(key, index)
        for prompt, key in entry["prompts"].items()
        for index in range(task.sampling.n)
    }
    stored, used = counted_completions(
        plan, store, name, entry["completions"], [*keys.values()], entry["stop"]
    )
    find = partial(find_verdicts, plan, store, TIERS["tier5"], name)
    samples = [(prompt, index, stored[key]) for (prompt, index), key in keys.items()]
    prompts = verify_samples(task, cache, documents, samples, find)
    check_samples(plan, name, prompts)
    units = prompt_units(prompts, task.views)
    summary = {
        "group": task.group,
        "primary": task.headline,
        **summarize_task(prompts, units, task.views),
        "views": {view: verifier.model_dump(mode="json") for view, verifier in task.views.items()},
        "answer_after": task.answer_after,
        **{key: entry[key] for key in ("decoding", "too_long", "data", "data_checksum", "items")},
        **{key: entry[key] for key in ("shortened", "window", "engine") if entry.get(key)},
    }
    return VerifiedTask(summary, units, task_files(name, prompts, summary), [*used.values()])


def verify_samples(
    task: CompletionTask,
    cache: PromptCache,
    documents: Mapping[str, DocumentLine],
    samples: Sequence[Sample],
    find: Callable[[Sequence[AnswerJob]], Sequence[Verdict]],
) -> list[SampledPrompt]:
    """Return the prompts of some samples, in the order in which these occur, with all verdicts.

    Args:
        find: Returns a verdict for each job.
    """
    texts = {prompt.id: prompt.prompt for prompt in cache.prompts}
    after, template = task.answer_after, cache.meta.get("chat_template")
    answers = [
        answer_part(completion.text, texts[prompt], after, template)
        for prompt, _, completion in samples
    ]
    found = find(
        [
            (verifier, documents[prompt].document, answer or "")
            for verifier in task.views.values()
            for (prompt, _, _), answer in zip(samples, answers, strict=True)
        ]
    )
    verdicts = map(unless_unfinished, found, cycle([answer is None for answer in answers]))
    by_view = {view: [*islice(verdicts, len(samples))] for view in task.views}
    of_prompt: dict[str, list[VerifiedSample]] = {}
    for number, (prompt, index, completion) in enumerate(samples):
        of_sample = {view: of_view[number] for view, of_view in by_view.items()}
        of_prompt.setdefault(prompt, []).append(VerifiedSample(index, completion, of_sample))
    return [
        SampledPrompt(documents[prompt], texts[prompt], verified)
        for prompt, verified in of_prompt.items()
    ]


def check_samples(plan: StagePlan, name: str, prompts: Sequence[SampledPrompt]) -> None:
    """Check that every verifier verified enough samples of a task; raise ScoringError."""
    of_sample = {f"sample {s.index} of {p.line.id}": s.verdicts for p in prompts for s in p.samples}
    for view in prompts[0].samples[0].verdicts:
        verdicts = {place: of_view[view] for place, of_view in of_sample.items()}
        check_errors(f"{name}: {view}", verdicts, plan.config.verification.max_error_share)


def task_files(
    name: str,
    prompts: Sequence[SampledPrompt],
    summary: Mapping[str, Any],
) -> dict[str, Callable[[Path], object]]:
    """Return a function that writes it for each file of a task, by its path in the checkpoint's folder."""
    rates = summary["verifiers"].items()
    at_k = {view: figures["pass_at_k"] for view, figures in rates if "pass_at_k" in figures}
    results, completions = sample_rows(prompts), sample_rows(prompts)
    files: dict[str, Callable[[Path], object]] = {
        "completions.jsonl": partial(write_jsonl, rows=map(_without_verdicts, completions)),
        RESULTS: partial(write_jsonl, rows=results),
        "summary.json": partial(write_json, content=dict(summary)),
        **({"pass_at_k.json": partial(write_json, content=at_k)} if at_k else {}),
    }
    return {f"{FOLDER}/{name}/{file}": write for file, write in files.items()}


def sample_rows(prompts: Sequence[SampledPrompt]) -> Iterator[dict[str, Any]]:
    """Yield the rows of `results.jsonl`."""
    for prompt in prompts:
        for sample in prompt.samples:
            yield {
                "id": prompt.line.id,
                "sample": sample.index,
                "prompt": prompt.text,
                "completion": sample.completion.text,
                "stop_reason": sample.completion.stop_reason,
                "prompt_tokens": sample.completion.prompt_tokens,
                "completion_tokens": sample.completion.tokens,
                "verdicts": {view: _shown(verdict) for view, verdict in sample.verdicts.items()},
            }


def _without_verdicts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "verdicts"}


def _shown(verdict: Verdict) -> dict[str, Any]:
    return {key: value for key, value in vars(verdict).items() if key != "note" or value}
