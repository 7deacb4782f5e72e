"""Tier5: stored completions cut, verified and counted, task by task."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.files import write_parquet
from evaluation.grading.completions import Prompt, Sample, summarize_task
from evaluation.grading.generation_files import prompt_rows, task_files
from evaluation.grading.verdicts import Case, verdicts_of
from evaluation.prefill.caches import check_cached_golds, read_documents, read_generation_task
from evaluation.prefill.schema import DocumentLine
from evaluation.scoring.stopping import stopping_with
from evaluation.scoring.stored_completions import (
    Completion,
    Count,
    sample_key,
    stored_completions,
    until_stopped,
)
from evaluation.settings.generation import Judged
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask, judged_task
from evaluation.store import ScoreStore
from evaluation.verification.golds import check_golds


@dataclass(frozen=True)
class GradedTask:
    """What the tier's file says of a task, its prompts' table, its files, its scores' summaries."""

    summary: dict[str, Any]
    prompts: pa.Table
    files: Mapping[str, Callable[[Path], object]]
    scores: Sequence[Mapping[str, Any]]


def grade_task(
    plan: StagePlan, store: ScoreStore, name: str, entry: Mapping[str, Any]
) -> GradedTask:
    """Verifies a task's completions and counts.

    Raises:
        ScoringError: a completion is gone from the store, or too many could not be verified.
        CacheError: the task's documents are not there.
    """
    folder = plan.generation_folder(name)
    cache, documents = read_generation_task(folder), read_documents(folder)
    asked = plan.suite.generation_tasks[name]
    task = judged_task(asked, cache.meta)
    if not isinstance(asked, ProviderTask):  # prefill had them judged
        check_cached_golds(folder, name, asked, partial(check_golds, nltk_data=plan.nltk_data))
    keys = [sample_key(k, n) for k in entry["prompts"].values() for n in range(task.sampling.n)]
    counting = _counting(plan, entry["stop"])
    stored, used = stored_completions(store, entry["completions"], keys, entry["stop"], counting)
    prompts = _judged(plan, store, name, task, entry["prompts"], stored, documents)
    views = list(task.views)
    summary = {
        "group": task.group,
        "primary": task.headline,
        **summarize_task(prompts, task.views),
        "views": {view: one.model_dump(mode="json") for view, one in task.views.items()},
        "answer_after": task.answer_after,
        **{key: entry[key] for key in ("decoding", "too_long", "data", "data_checksum", "items")},
        **({"engine": entry["engine"]} if entry.get("engine") else {}),
    }
    texts = {line.id: line.prompt for line in cache.prompts}
    files = task_files(name, prompts, texts, summary, views)
    return GradedTask(summary, prompt_rows(prompts, views), files, list(used.values()))


def _judged(
    plan: StagePlan,
    store: ScoreStore,
    name: str,
    task: Judged,
    keys: Mapping[str, str],
    stored: Mapping[str, Completion],
    documents: Mapping[str, DocumentLine],
) -> list[Prompt]:
    """The task's prompts in order, each with its samples and their verdicts."""
    found = [
        (prompt, index, _completion(stored, name, key, index))
        for prompt, key in keys.items()
        for index in range(task.sampling.n)
    ]
    cases = [Case(p, i, task.read_part(one.text), documents[p].document) for p, i, one in found]
    verdicts = verdicts_of(plan, store, name, task, cases)
    samples: dict[str, list[Sample]] = {prompt: [] for prompt in keys}
    for number, (prompt, index, completion) in enumerate(found):
        said = {view: by_case[number] for view, by_case in verdicts.items()}
        samples[prompt].append(Sample(index, completion, said))
    return [Prompt(documents[prompt], members) for prompt, members in samples.items()]


def _counting(plan: StagePlan, stops: Sequence[str]) -> Count:
    """The tokenizer is loaded where completions were generated with other stop strings."""

    @lru_cache
    def count() -> Count:
        from evaluation.prefill.tokenizers import load_tokenizer

        tokenizer = load_tokenizer(str(plan.tokenizer_folder), use_fast=plan.tokenizer.use_fast)
        return until_stopped(stopping_with(tokenizer, (), stops))

    return lambda tokens: count()(tokens)


def _completion(stored: Mapping[str, Completion], name: str, key: str, index: int) -> Completion:
    found = stored.get(sample_key(key, index))
    if found is None:
        raise ScoringError(
            f"{name}: a completion is gone from the store; score this checkpoint again"
        )
    return found


def write_prompts(tables: Mapping[str, pa.Table]) -> Callable[[Path], object]:
    """How `tier5_verified_prompts.parquet` is written: all tasks' prompts under each other."""
    stacked = [
        table.add_column(0, "task", pa.array([name] * table.num_rows, pa.string()))
        for name, table in tables.items()
    ]
    return partial(write_parquet, table=pa.concat_tables(stacked))
