"""The answers to probes (Tier4) and the completions of tasks with their verdicts (Tier5)."""

from collections.abc import Iterator
from pathlib import Path

from evaluation.results.files import COLLECT_AGAIN, FileModel, read_records, unusable
from evaluation.results.tier_files import Count, Rate

FOLDER = "generation"
"""Folder of a folder for each task, in that of a checkpoint's results."""

RESULTS = "results.jsonl"
"""A task's completions with their verdicts."""


class Generation(FileModel):
    """A prompt and its answer."""

    id: str
    category: str | None = None
    prompt: str
    response: str
    stop_reason: str | None = None


def read_generations(path: Path) -> dict[str, Generation]:
    """Read Tier4's answers by the id of their prompt, in the order of the file; raise ResultsError."""
    generations: dict[str, Generation] = {}
    for where, generation in read_records(path, Generation, COLLECT_AGAIN):
        if generation.id in generations:
            raise unusable(where, f"the id {generation.id!r} appears twice")
        generations[generation.id] = generation
    return generations


class VerdictEntry(FileModel):
    """A verifier's verdict on a completion; no credit where the verifier failed."""

    credit: Rate | None
    answer: str | None = None
    reason: str | None = None


class VerifiedCompletion(FileModel):
    """A completion with the verdicts on it."""

    id: str
    sample: Count
    prompt: str
    completion: str
    stop_reason: str
    verdicts: dict[str, VerdictEntry]

    @property
    def credits(self) -> dict[str, float | None]:
        """The credit by each verifier."""
        return {view: verdict.credit for view, verdict in self.verdicts.items()}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why verifiers do not give the full score, each with its name."""
        return tuple(f"{view}: {v.reason}" for view, v in self.verdicts.items() if v.reason)


def read_verified(folder: Path, task: str) -> Iterator[VerifiedCompletion]:
    """Yield a task's completions with their verdicts, from a checkpoint's folder; raise ResultsError."""
    path = folder / FOLDER / task / RESULTS
    for _, completion in read_records(path, VerifiedCompletion, COLLECT_AGAIN):
        yield completion
