"""Verify completions of any source, in a file, as a stage's task verifies its own."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from evaluation.dependencies.caches import CacheEntry, CacheStates, check_current
from evaluation.errors import ResultsError, ScoringError, SourceError
from evaluation.grading.completions import group_samples, summarize_task
from evaluation.grading.verdicts import Job, check_errors, run_verifiers
from evaluation.input_files import read_json, read_lines
from evaluation.prefill.caches import read_documents, read_prompts
from evaluation.prefill.entries import read_meta
from evaluation.prefill.files import check_unicode
from evaluation.reading.thinking import is_closed_by, read_answer
from evaluation.scoring.answers import cut
from evaluation.scoring.stored_completions import Completion
from evaluation.settings.generation import CompletionTask
from evaluation.settings.model import LARGEST_COUNT
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import settled_task
from evaluation.verification.verdicts import Verdict, unless_unfinished


@dataclass(frozen=True)
class CompletionLine:
    """A line of the file: a prompt's id and what was written after the prompt."""

    id: str
    sample: int
    completion: str


def _read_completions(path: Path, prompts: Mapping[str, Any]) -> list[CompletionLine]:
    """Read lines of `id`, `completion` and, where a prompt has several, `sample`.

    Raises:
        ResultsError: A line is not such an object, an id is not among the task's `prompts`, or a sample
            occurs twice.
    """
    found: dict[tuple[str, int], CompletionLine] = {}
    counts: Counter[str] = Counter()
    for number, text in read_lines(path, ResultsError, "JSONL of `id` and `completion`"):
        if not text.strip():
            continue
        where = f"{path}: line {number}"
        row = read_json(text, where, ResultsError)
        if not isinstance(row, dict):
            raise ResultsError(f"{where} is no JSON object; write it again")
        line = _checked(row, where, prompts, counts[str(row.get("id"))])
        if (line.id, line.sample) in found:
            raise ResultsError(f"{where}: sample {line.sample} of {line.id!r} appears twice")
        counts[line.id] += 1
        found[line.id, line.sample] = line
    if not found:
        raise ResultsError(f"{path}: it holds no completions")
    least, most = min(counts, key=counts.__getitem__), max(counts.values())
    if counts[least] < most:
        raise ScoringError(
            f"{least!r} has {counts[least]} completions, and another prompt {most}; give as many of each"
        )
    return list(found.values())


def _checked(
    row: dict[str, Any], where: str, prompts: Mapping[str, Any], next_sample: int
) -> CompletionLine:
    id, text, sample = row.get("id"), row.get("completion"), row.get("sample", next_sample)
    if not isinstance(id, str) or not isinstance(text, str):
        raise ResultsError(f"{where}: a line needs the texts `id` and `completion`")
    if id not in prompts:
        raise ResultsError(
            f"{where}: {id!r} is not a prompt of the task, whose ids are like "
            f"{next(iter(prompts))!r}; name the task that was completed"
        )
    if type(sample) is not int or not 0 <= sample < LARGEST_COUNT:
        raise ResultsError(f"{where}: `sample` is {sample!r}, not a number 0, 1, 2 …")
    try:
        check_unicode(text)
    except SourceError as error:
        raise ResultsError(f"{where}: `completion`: {error}") from None
    return CompletionLine(id, sample, text)


def verify_by_hand(
    plan: StagePlan, name: str, path: Path
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Verify completions of a file, cut at the task's stop strings.

    Args:
        plan: The stage that has the task.
        name: The task's name in the suite.
        path: JSONL file of completions, or `-` for standard input.

    Returns:
        The lines with their verdicts, and the task's summary.

    Raises:
        ResultsError: When the file does not hold completions of the task.
        CacheError: When the task is not prefilled as the configuration describes it now.
        ScoringError: When a prompt has fewer completions than another, or a verifier failed on all.
    """
    folder = plan.cache_folder("tier5", name)
    check_current(CacheStates(), CacheEntry(plan, "tier5", name, folder))
    documents = read_documents(folder)
    task = settled_task(plan.suite.generation_tasks[name], read_meta(folder))
    lines = _read_completions(path, documents)
    answers = _answers(folder, task, lines)
    texts = [answer or "" for answer in answers]
    jobs: list[Job] = [
        (verifier, documents[line.id].document, text)
        for verifier in task.views.values()
        for line, text in zip(lines, texts, strict=True)
    ]
    found = dict(run_verifiers(plan, jobs))
    in_order = (
        unless_unfinished(found[number], answers[number % len(lines)] is None)
        for number in range(len(jobs))
    )
    verdicts = {view: list(islice(in_order, len(lines))) for view in task.views}
    completions = [
        (line.id, line.sample, Completion(text, "unknown", 0, 0))
        for line, text in zip(lines, texts, strict=True)
    ]
    prompts = group_samples(completions, verdicts, documents)
    summary = summarize_task(prompts, task.views)
    for unknown in ("truncated_rate", "mean_tokens"):
        del summary[unknown]
    summary["prompts_without_completion"] = len(documents) - len(prompts)
    rows = [
        {**vars(line), "verdicts": {view: _shown(own[number]) for view, own in verdicts.items()}}
        for number, line in enumerate(lines)
    ]
    return rows, {"task": name, "primary": task.headline, **summary}


def _answers(
    folder: Path, task: CompletionTask, lines: Sequence[CompletionLine]
) -> list[str | None]:
    """Return the part of each completion that verifiers read; None where the thinking is unfinished."""
    mark = task.answer_after
    prompts = read_prompts(folder).prompts if mark else ()
    closed = {prompt.id for prompt in prompts if is_closed_by(prompt.prompt, mark)}
    return [
        read_answer(_cut(line.completion, task.stop), mark, is_required=line.id not in closed)
        for line in lines
    ]


def _shown(verdict: Verdict) -> dict[str, Any]:
    note = {"note": verdict.note} if verdict.note else {}
    return {"credit": verdict.credit, "answer": verdict.answer, "reason": verdict.reason, **note}


def _cut(completion: str, stops: Sequence[str]) -> str:
    found = cut(completion, stops)
    return completion if found is None else found


def check_verified(plan: StagePlan, rows: Sequence[Mapping[str, Any]]) -> None:
    """Check how many completions of a file could not be verified.

    Args:
        plan: The stage that has the task.
        rows: The lines as `verify_by_hand` returns them.

    Raises:
        ScoringError: When a verifier failed on more than `verification.max_error_share`.
    """
    places = [f"sample {row['sample']} of {row['id']}" for row in rows]
    for view in rows[0]["verdicts"]:
        verdicts = [Verdict(**row["verdicts"][view]) for row in rows]
        check_errors(view, places, verdicts, plan.config.verification.max_error_share)
