"""A prefilled generation task as its readers see it: prompts for scoring, documents for grading."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.files import fingerprint
from evaluation.prefill.caches import DOCUMENTS, PROMPTS, check_files, checked_meta, read_lines
from evaluation.prefill.models import DocumentLine, GenerationMeta, TaskPromptLine
from evaluation.settings.generation import GenerationTask

CheckGolds = Callable[[str, GenerationTask, Mapping[str, Mapping[str, Any]]], None]
"""Raises for documents, by prompt, whose gold answers their own verifiers do not accept."""


@dataclass(frozen=True)
class GenerationCache:
    """A task's prompts in the order of the dataset, and a document for each, by id."""

    prompts: list[TaskPromptLine]
    meta: dict[str, Any]


def read_generation_task(folder: Path) -> GenerationCache:
    """Reads a task's prompts; raises CacheError."""
    meta = checked_meta(folder, GenerationMeta)
    check_files(folder, meta, (PROMPTS,))
    return GenerationCache(list(read_lines(folder / PROMPTS, TaskPromptLine)), meta)


def read_documents(folder: Path) -> dict[str, DocumentLine]:
    """What verifiers read of each prompt, by its id; raises CacheError."""
    meta = checked_meta(folder, GenerationMeta)
    check_files(folder, meta, (DOCUMENTS,))
    return {line.id: line for line in read_lines(folder / DOCUMENTS, DocumentLine)}


def check_cached_golds(
    folder: Path, name: str, task: GenerationTask, check_golds: CheckGolds
) -> None:
    """Looks at golds again where the verifiers are others than those that prefill asked.

    Raises SourceError for a gold that is not right, CacheError for a missing or damaged cache.
    """
    if checked_meta(folder, GenerationMeta).get("checked") != fingerprint(task.verifying()):
        documents = read_documents(folder)
        check_golds(name, task, {id: line.document for id, line in documents.items()})
