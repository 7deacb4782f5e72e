"""Verify completions of any source, in a file, as a stage's task verifies its own."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from evaluation.dependencies.caches import CacheEntry, CacheStates, check_current
from evaluation.grading.completions import group_samples, prompts_by_verifier, summarize_task
from evaluation.grading.verdicts import AnswerJob, check_errors, run_verifiers
from evaluation.prefill.caches import read_documents, read_prompts
from evaluation.prefill.entries import read_meta
from evaluation.scoring.answers import cut
from evaluation.scoring.completion_files import CompletionLine, read_completions
from evaluation.scoring.stored_completions import StoredCompletion
from evaluation.settings.generation import CompletionTask
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import settled_task
from evaluation.settings.tiers import TIERS
from evaluation.verification.thinking import answer_part
from evaluation.verification.verdicts import Verdict, unless_unfinished


def verify_by_hand(
    plan: StagePlan, name: str, path: Path
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Verify completions of a file, cut at stop strings; return the lines with verdicts, and a summary.

    Args:
        path: JSONL file of completions in one of the formats of `completion_files`, or `-`.

    Raises:
        ResultsError: The file does not hold completions of the task.
        CacheError: The task is not prefilled as the configuration describes it now.
        ScoringError: A prompt has fewer completions than another, or a verifier failed on all.
    """
    folder = plan.cache_folder("tier5", name)
    check_current(CacheStates(), CacheEntry(plan, "tier5", name, folder))
    documents, texts_of = read_documents(folder), read_prompts(folder).prompts
    task = settled_task(plan.suite.generation_tasks[name], read_meta(folder))
    lines = read_completions(path, {prompt.id: prompt.prompt for prompt in texts_of}).lines
    answers = _answers(folder, task, lines)
    texts = [answer or "" for answer in answers]
    jobs: list[AnswerJob] = [
        (verifier, documents[line.id].document, text)
        for verifier in task.views.values()
        for line, text in zip(lines, texts, strict=True)
    ]
    outcomes = dict(run_verifiers(plan, jobs))
    in_order = (
        unless_unfinished(outcomes[number], answers[number % len(lines)] is None)
        for number in range(len(jobs))
    )
    verdicts = {view: list(islice(in_order, len(lines))) for view in task.views}
    completions = [
        (line.id, line.sample, StoredCompletion(text, "unknown", 0, 0))
        for line, text in zip(lines, texts, strict=True)
    ]
    prompts = group_samples(completions, verdicts, documents)
    summary = summarize_task(prompts, prompts_by_verifier(prompts, task.views)[1], task.views)
    for unknown in TIERS["tier5"].metrics:  # how a completion ended, and its number of tokens
        summary.pop(unknown.key, None)
    summary["prompts_without_completion"] = len(documents) - len(prompts)
    rows = [_row(line, verdicts, number) for number, line in enumerate(lines)]
    return rows, {"task": name, "primary": task.headline, **summary}


def _row(
    line: CompletionLine, verdicts: Mapping[str, Sequence[Verdict]], number: int
) -> dict[str, Any]:
    return {
        "id": line.id,
        "sample": line.sample,
        "completion": line.completion,
        "verdicts": {view: _shown(of_view[number]) for view, of_view in verdicts.items()},
    }


def _answers(
    folder: Path, task: CompletionTask, lines: Sequence[CompletionLine]
) -> list[str | None]:
    """Return the part of each completion that verifiers read; None where the thinking is unfinished."""
    cache = read_prompts(folder)
    template = cache.meta.get("chat_template")
    prompts = {prompt.id: prompt.prompt for prompt in cache.prompts}
    return [
        answer_part(_cut(line.completion, task.stop), prompts[line.id], task.answer_after, template)
        for line in lines
    ]


def _shown(verdict: Verdict) -> dict[str, Any]:
    note = {"note": verdict.note} if verdict.note else {}
    return {"credit": verdict.credit, "answer": verdict.answer, "reason": verdict.reason, **note}


def _cut(completion: str, stops: Sequence[str]) -> str:
    shortened = cut(completion, stops)
    return completion if shortened is None else shortened


def check_verified(plan: StagePlan, rows: Sequence[Mapping[str, Any]]) -> None:
    """Check how many lines of `verify_by_hand` could not be verified; raise ScoringError for too many."""
    places = [f"sample {row['sample']} of {row['id']}" for row in rows]
    for view in rows[0]["verdicts"]:
        verdicts = [Verdict(**row["verdicts"][view]) for row in rows]
        check_errors(view, places, verdicts, plan.config.verification.max_error_share)
