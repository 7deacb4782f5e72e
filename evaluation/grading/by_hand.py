"""Completions in a file: verified as a stage's task verifies its own, or stored as a checkpoint's.

A line is a completion: {"id": "gsm8k/0", "sample": 0, "completion": "…", "stop_reason": "stop"}
"""

import os
from collections import Counter
from collections.abc import Container, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.subjects import Subject, stage_subjects
from evaluation.errors import ResultsError, ScoringError
from evaluation.files import fingerprint, read_lines, write_json
from evaluation.grading.completions import (
    SampledPrompt,
    prompt_units,
    summarize_task,
    verify_samples,
)
from evaluation.grading.verdicts import find_verdicts
from evaluation.prefill.caches import PromptCache, read_documents, read_prompts
from evaluation.prefill.entries import check_entry, read_meta
from evaluation.prefill.tiers import PREFILLS
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.records import forget
from evaluation.results.files import FileModel, parse_model, unusable
from evaluation.results.tier_files import Count
from evaluation.scoring import stored_completions as stored
from evaluation.scoring.answers import cut
from evaluation.scoring.stored_completions import IMPORTED, import_key, imports_of
from evaluation.settings.generation import CompletionTask
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import settled_task
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore, StoredScore

_AGAIN = "write this line anew"


class CompletionLine(FileModel):
    """What was written after a prompt; `stop_reason` is in the words of the engine."""

    id: str
    completion: str
    sample: Count | None = None
    stop_reason: str | None = None


def read_completions(path: Path, ids: Container[str]) -> dict[tuple[str, int], CompletionLine]:
    """Return a file's lines by prompt and sample; raise ResultsError for one that cannot be used."""
    lines, counts = dict[tuple[str, int], CompletionLine](), Counter[str]()
    for number, text in read_lines(path, ResultsError, "JSONL of `id` and `completion`"):
        where = path.with_name(f"{path.name}, line {number}")
        if text.strip():
            line = parse_model(where, text, CompletionLine, _AGAIN)
            key = line.id, counts[line.id] if line.sample is None else line.sample
            if line.id not in ids or key in lines:
                what = "appears twice" if key in lines else "is of no prompt of the task"
                raise unusable(where, f"sample {key[1]} of {line.id!r} {what}", _AGAIN)
            lines[key] = line
            counts[line.id] += 1
    if not lines:
        raise ResultsError(f"{path}: it holds no completions; write a line for each")
    return lines


def verify_file(
    plan: StagePlan, name: str, path: Path
) -> tuple[list[SampledPrompt], dict[str, Any]]:
    """Return a file's completions with verdicts, cut at the task's stop strings, and their summary.

    Raises EvaluationError where the file or the task's cache is at fault, or a verifier failed on all.
    """
    task, cache = _prefilled(plan, name)
    documents, samples = read_documents(plan.cache_folder("tier5", name)), []
    for key, line in read_completions(path, documents).items():
        text = cut(line.completion, task.stop)
        text = line.completion if text is None else text
        samples.append((*key, stored.StoredCompletion(text, "unknown", 0, 0)))
    with TemporaryDirectory() as folder:
        store = ScoreStore(Path(folder), "a file")
        find = partial(find_verdicts, plan, store, TIERS["tier5"], name)
        prompts = verify_samples(task, cache, documents, samples, find)
    summary = summarize_task(prompts, prompt_units(prompts, task.views), task.views)
    for unknown in TIERS["tier5"].metrics:  # how a completion ended, and its number of tokens
        summary.pop(unknown.key, None)
    summary["prompts_without_completion"] = len(documents) - len(prompts)
    return prompts, {"task": name, "primary": task.headline, **summary}


def import_file(
    plans: Mapping[str, StagePlan], subject: Subject, name: str, path: Path, engine: str
) -> None:
    """Store a file's completions as a checkpoint's; raise EvaluationError as `verify_file` does.

    The next run scores it again, by the store: the records of its scores are removed in all stages.
    """
    task, cache = _prefilled(subject.plan, name)
    prompts = {prompt.id: prompt for prompt in cache.prompts}
    lines = read_completions(path, prompts)
    if wrong := {(id, n) for id in prompts for n in range(task.sampling.n)} ^ lines.keys():
        raise ScoringError(
            f"{name}: {len(wrong)} samples are missing or not requested, such as {min(wrong)}; give "
            f"{task.sampling.n} of each prompt, or edit `limit` or `sampling.n` of the task"
        )
    tokens = stage_tokenizer(subject.plan).encode([line.completion for line in lines.values()])
    rows = []
    for ((id, index), line), ids in zip(lines.items(), tokens, strict=True):
        # Where nothing says more, a completion that fills the limit was cut off.
        is_full = line.stop_reason is None and len(ids) >= prompts[id].max_new_tokens
        reason = "length" if is_full or line.stop_reason in ("length", "max_tokens") else "eos"
        key = stored.sample_key(stored.prompt_key(prompts[id]), index)
        row = (key, line.completion, reason, len(prompts[id].tokens), len(ids), [*ids])
        rows.append(dict(zip(stored.COMPLETIONS.names, row, strict=True)))
    stops = [*task.stop, *cache.meta["end_strings"]]
    summary = {"seconds": 0.0, "tokens_processed": 0, "packages": {}, stored.STOP: stops}
    score = StoredScore(pa.Table.from_pylist(rows, stored.COMPLETIONS), summary)
    origin = {"engine": engine, "file": path.name, "checksum": fingerprint(rows)}
    identity = Contents(Path(subject.plan.config.results)).identity(subject.open())
    store = ScoreStore(subject.plan.scores, identity)
    store.put_part(*import_key(name, origin), score)
    store.pack()
    write_json(store.folder / IMPORTED, {**imports_of(store), name: origin})
    for other in (other for plan in plans.values() for other in stage_subjects(plan, plans)):
        if os.path.realpath(other.checkpoint) == os.path.realpath(subject.checkpoint):
            forget(other.folder, "score")


def _prefilled(plan: StagePlan, name: str) -> tuple[CompletionTask, PromptCache]:
    folder = plan.cache_folder("tier5", name)
    tokenizer = read_meta(plan.tokenizer_folder)
    check_entry(folder, PREFILLS["tier5"].define(plan, name, tokenizer))
    cache = read_prompts(folder)
    return settled_task(plan.suite.generation_tasks[name], cache.meta), cache
