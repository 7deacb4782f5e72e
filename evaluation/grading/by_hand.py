"""Completions from anywhere, verified as a stage's task verifies its own."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from evaluation.dependencies.caches import CacheEntry, CacheStates, check_current
from evaluation.errors import ResultsError, ScoringError, SourceError
from evaluation.grading.completions import group_samples, summarize_task
from evaluation.grading.verdicts import Job, check_errors, run_verifiers
from evaluation.input_files import read_json, read_lines
from evaluation.prefill.caches import read_documents
from evaluation.prefill.entries import read_meta
from evaluation.prefill.files import check_unicode
from evaluation.scoring.answers import cut
from evaluation.scoring.stored_completions import Completion
from evaluation.settings.model import LARGEST_COUNT
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import judged_task
from evaluation.verification.verdicts import Verdict


@dataclass(frozen=True)
class CompletionLine:
    """A line of the file: a prompt's id and what was written after the prompt."""

    id: str
    sample: int
    completion: str


def read_completions(path: Path, known: Mapping[str, Any]) -> list[CompletionLine]:
    """Read lines of `id`, `completion` and, where a prompt has several, `sample`.

    Raises:
        ResultsError: for a line that is not such an object, an id that the task does not have, or a
            sample that is there twice.
    """
    found: dict[tuple[str, int], CompletionLine] = {}
    counts: dict[str, int] = {}
    for number, row in _lines(path):
        where = f"{path}: line {number}"
        id, text = row.get("id"), row.get("completion")
        if not isinstance(id, str) or not isinstance(text, str):
            raise ResultsError(f"{where}: a line needs the texts `id` and `completion`")
        if id not in known:
            raise ResultsError(
                f"{where}: {id!r} is no prompt of the task, whose ids are like "
                f"{next(iter(known))!r}; name the task that was completed"
            )
        sample = row.get("sample", counts.get(id, 0))
        if type(sample) is not int or not 0 <= sample < LARGEST_COUNT:
            raise ResultsError(f"{where}: `sample` is {sample!r}, not a number 0, 1, 2 …")
        _check_unicode(text, where)
        if (id, sample) in found:
            raise ResultsError(f"{where}: sample {sample} of {id!r} is there twice")
        counts[id] = counts.get(id, 0) + 1
        found[id, sample] = CompletionLine(id, sample, text)
    if not found:
        raise ResultsError(f"{path}: it holds no completions")
    return list(found.values())


def _check_unicode(text: str, where: str) -> None:
    try:
        check_unicode(text)
    except SourceError as error:
        raise ResultsError(f"{where}: `completion`: {error}") from None


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in read_lines(path, ResultsError, "JSONL of `id` and `completion`"):
        if not line.strip():
            continue
        row = read_json(line, f"{path}: line {number}", ResultsError)
        if not isinstance(row, dict):
            raise ResultsError(f"{path}: line {number} is no JSON object; write it again")
        yield number, row


def verify_by_hand(
    plan: StagePlan, name: str, path: Path
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the lines with their verdicts, and the task's summary; completions are cut at stops.

    Raises:
        ResultsError: the file cannot be read as such.
        CacheError: the task is not prefilled as the configuration has it now.
        ScoringError: a prompt has fewer completions than another, or a verifier failed on all.
    """
    folder = plan.generation_folder(name)
    check_current(CacheStates(), CacheEntry(plan, "tier5", name, folder))
    documents = read_documents(folder)
    task = judged_task(plan.suite.generation_tasks[name], read_meta(folder))
    given = read_completions(path, documents)
    _check_counts(given)
    texts = [task.read_part(_cut(one.completion, task.stop)) for one in given]
    views = list(task.views)
    jobs: list[Job] = [
        (task.verifiers[view], documents[one.id].document, text)
        for view in views
        for one, text in zip(given, texts, strict=True)
    ]
    reached = dict(run_verifiers(plan, jobs))
    in_order = iter([reached[number] for number in range(len(jobs))])
    verdicts = {view: list(islice(in_order, len(given))) for view in views}
    completions = [
        (one.id, one.sample, Completion(text, "unknown", 0, 0))
        for one, text in zip(given, texts, strict=True)
    ]
    prompts = group_samples(completions, verdicts, documents)
    summary = summarize_task(prompts, task.views)
    for unknown in ("truncated_rate", "mean_tokens"):
        del summary[unknown]
    summary["prompts_without_completion"] = len(documents) - len(prompts)
    rows = [
        _row(one, {view: by_case[number] for view, by_case in verdicts.items()})
        for number, one in enumerate(given)
    ]
    return rows, {"task": name, "primary": task.headline, **summary}


def _cut(completion: str, stops: Sequence[str]) -> str:
    found = cut(completion, stops)
    return completion if found is None else found


def check_verified(plan: StagePlan, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ScoringError like `check_errors`; `rows` are those of `verify_by_hand`."""
    places = [f"sample {row['sample']} of {row['id']}" for row in rows]
    for view in rows[0]["verdicts"]:
        said = [Verdict(**row["verdicts"][view]) for row in rows]
        check_errors(view, places, said, plan.config.verification.max_error_share)


def _check_counts(given: Sequence[CompletionLine]) -> None:
    counts = Counter(one.id for one in given)
    least, most = min(counts, key=counts.__getitem__), max(counts.values())
    if counts[least] < most:
        raise ScoringError(
            f"{least!r} has {counts[least]} completions, and another prompt {most}; give as many of each"
        )


def _row(one: CompletionLine, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    return {
        "id": one.id,
        "sample": one.sample,
        "completion": one.completion,
        "verdicts": {
            view: {"credit": v.credit, "answer": v.answer, "reason": v.reason}
            for view, v in verdicts.items()
        },
    }
