"""Tier5: a task's stored completions, cut, verified and counted.

A task has a folder `generation/<task>/` with these files:

completions.jsonl   a line per sample: prompt, completion, how it ended
results.jsonl       the same with each verifier's verdict
summary.json        the task's part of tier5_verified.json
pass_at_k.json      pass@k by verifier, where there are several samples
prompts.parquet     a row per prompt and verifier: samples, how many pass in full, pass rate, strata
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluation.files import write_json, write_jsonl, write_parquet
from evaluation.fingerprints import fingerprint, unordered
from evaluation.grading.completions import (
    SampledPrompt,
    VerifiedSample,
    group_samples,
    prompts_by_verifier,
    summarize_task,
)
from evaluation.grading.verdicts import CompletionBatch, find_verdicts
from evaluation.prefill.caches import DocumentLine, check_cached_golds, read_documents, read_prompts
from evaluation.results.kinds import Units
from evaluation.results.verified_files import FOLDER, RESULTS
from evaluation.scoring.stored_completions import StoredCompletion, counted_completions, sample_key
from evaluation.settings.generation import CompletionTask
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import settled_task
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore
from evaluation.verification.thinking import answer_part
from evaluation.verification.verdicts import unless_unfinished


@dataclass(frozen=True)
class VerifiedTask:
    """A task's entry of the tier's file, its prompts' table and units, its files, its scores' summaries."""

    summary: dict[str, Any]
    prompts: pa.Table
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
    generation_task = plan.suite.generation_tasks[name]
    task = settled_task(generation_task, cache.meta)
    check_cached_golds(plan, name)
    keys = [sample_key(k, n) for k in entry["prompts"].values() for n in range(task.sampling.n)]
    stored, used = counted_completions(plan, store, name, entry["completions"], keys, entry["stop"])
    texts = {line.id: line.prompt for line in cache.prompts}
    template = cache.meta.get("chat_template")
    prompts = _verified(
        plan, store, name, task, entry["prompts"], stored, documents, texts, template
    )
    rows, units = prompts_by_verifier(prompts, task.views)
    summary = {
        "group": task.group,
        "primary": task.headline,
        **summarize_task(prompts, units, task.views),
        "views": {view: one.model_dump(mode="json") for view, one in task.views.items()},
        "answer_after": task.answer_after,
        **{key: entry[key] for key in ("decoding", "too_long", "data", "data_checksum", "items")},
        **{key: value for key in ("shortened", "window") if (value := entry.get(key))},
        **({"engine": entry["engine"]} if entry.get("engine") else {}),
    }
    files = task_files(name, prompts, rows, texts, summary)
    return VerifiedTask(summary, rows, units, files, list(used.values()))


def _verified(
    plan: StagePlan,
    store: ScoreStore,
    name: str,
    task: CompletionTask,
    prompt_keys: Mapping[str, str],
    stored: Mapping[str, StoredCompletion],
    documents: Mapping[str, DocumentLine],
    texts: Mapping[str, str],
    template: str | None,
) -> list[SampledPrompt]:
    """Return the task's prompts in order, each with its samples and their verdicts."""
    verified = [
        (prompt, index, stored[sample_key(key, index)])
        for prompt, key in prompt_keys.items()
        for index in range(task.sampling.n)
    ]
    answers = [
        answer_part(one.text, texts[prompt], task.answer_after, template)
        for prompt, _, one in verified
    ]
    read = [
        (documents[prompt].document, answer or "")
        for (prompt, _, _), answer in zip(verified, answers, strict=True)
    ]
    keys = [fingerprint([unordered(document), text]) for document, text in read]
    places = [f"sample {index} of {prompt}" for prompt, index, _ in verified]
    batches = [
        CompletionBatch(
            name=f"{name}: {view}",
            item=f"verdicts-{name}-{_in_a_file_name(view)}",
            settings={
                "protocol": TIERS["tier5"].protocol,
                "verifier": verifier.model_dump(mode="json"),
            },
            jobs=[(verifier, document, text) for document, text in read],
            keys=keys,
            places=places,
            max_error_share=plan.config.verification.max_error_share,
        )
        for view, verifier in task.views.items()
    ]
    verdicts = {
        view: [
            unless_unfinished(v, answer is None) for v, answer in zip(by_case, answers, strict=True)
        ]
        for view, by_case in zip(task.views, find_verdicts(plan, store, batches), strict=True)
    }
    return group_samples(verified, verdicts, documents)


def _in_a_file_name(view: str) -> str:
    """Return a view's name for file names: a metric may be called `a/b`; keys tell equals apart."""
    return re.sub(r"[^\w,@.-]", "_", view)


def task_files(
    name: str,
    prompts: Sequence[SampledPrompt],
    rows: pa.Table,
    texts: Mapping[str, str],
    summary: Mapping[str, Any],
) -> dict[str, Callable[[Path], object]]:
    """Return a function that writes it for each file of a task, by its path in the checkpoint's folder.

    Args:
        rows: The prompts' results, as `prompts_by_verifier` returns them.
        texts: The prompts as the model read them, by id.
    """
    files: dict[str, Callable[[Path], object]] = {
        "completions.jsonl": partial(write_jsonl, rows=_lines(prompts, texts, with_verdicts=False)),
        RESULTS: partial(write_jsonl, rows=_lines(prompts, texts, with_verdicts=True)),
        "prompts.parquet": partial(write_parquet, table=rows),
        "summary.json": partial(write_json, content=dict(summary)),
    }
    at_k = {
        v: rates["pass_at_k"] for v, rates in summary["verifiers"].items() if "pass_at_k" in rates
    }
    if at_k:
        files["pass_at_k.json"] = partial(write_json, content=at_k)
    return {f"{FOLDER}/{name}/{file}": write for file, write in files.items()}


def _lines(
    prompts: Sequence[SampledPrompt], texts: Mapping[str, str], *, with_verdicts: bool
) -> Iterator[dict[str, Any]]:
    for prompt in prompts:
        for sample in prompt.samples:
            yield {
                "id": prompt.line.id,
                "sample": sample.index,
                "prompt": texts[prompt.line.id],
                "completion": sample.completion.text,
                "stop_reason": sample.completion.stop_reason,
                "prompt_tokens": sample.completion.prompt_tokens,
                "completion_tokens": sample.completion.tokens,
                **({"verdicts": _verdicts(sample)} if with_verdicts else {}),
            }


def _verdicts(sample: VerifiedSample) -> dict[str, dict[str, Any]]:
    return {
        view: {
            "credit": v.credit,
            "answer": v.answer,
            "reason": v.reason,
            "weight": v.weight,
            **({"note": v.note} if v.note else {}),
        }
        for view, v in sample.verdicts.items()
    }
