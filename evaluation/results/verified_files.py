"""Tier5's files: the summary of rates by verifier, and each task's completions with their verdicts."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from evaluation.results.files import COLLECT_AGAIN, FileModel, read_records
from evaluation.results.tier_files import Count, ItemEntry, Rate, TierFile, measured, stored_values
from evaluation.settings.tiers import TIERS

FOLDER = "generation"
"""Folder of a folder for each task, in that of a checkpoint's results."""

RESULTS = "results.jsonl"
"""A task's completions with their verdicts."""

if TYPE_CHECKING:

    class _CompletionMetrics(ItemEntry):
        """An entry with the metrics of completions."""

else:
    _CompletionMetrics = measured(
        ItemEntry, [m for m in TIERS["tier5"].metrics if m.name != TIERS["tier5"].headline]
    )


class MeanRate(FileModel):
    """A mean over prompts with its 95 % interval; no bounds for a single prompt."""

    value: Rate | None
    stderr: float | None = Field(None, ge=0)
    low: Rate | None = None
    high: Rate | None = None
    prompts: Count | None = None


class VerifierRates(FileModel):
    """Rates of a task's completions by one verifier."""

    pass_rate: Rate
    stderr: float | None = Field(None, ge=0)
    low: Rate | None = None
    high: Rate | None = None
    weighted_rate: Rate | None = None
    format_rate: Rate | None = None
    errors: Count = 0
    over_limits: Count = 0
    pass_at_k: dict[str, MeanRate] = {}
    cons_at_n: MeanRate | None = None


class OtherEngine(FileModel):
    """The engine that wrote the completions in place of the built-in one, and how far the two agree."""

    name: str
    version: str | None = None
    imported: str | None = None
    asked: Count | None = None
    equal: Count | None = None

    @property
    def title(self) -> str:
        """Its name, with its version if that is recorded."""
        return self.name if self.version is None else f"{self.name} {self.version}"


class WindowEntry(FileModel):
    """How many tokens a prompt and its completion may have together."""

    tokens: int = Field(gt=0)
    trained: int | None = None


class GenerationEntry(_CompletionMetrics):
    """A task of Tier5."""

    primary: str
    verifiers: dict[str, VerifierRates] = Field(min_length=1)
    views: dict[str, Any] = {}
    answer_after: str | None = None
    decoding: dict[str, Any] = {}
    engine: OtherEngine | None = None
    prompts: Count
    samples: Count
    too_long: tuple[str, ...] = ()
    shortened: tuple[str, ...] = ()
    window: WindowEntry | None = None
    empty_rate: Rate | None = None
    unfinished: Count = 0
    strata: dict[str, dict[str, MeanRate]] = {}

    @model_validator(mode="after")
    def _has_primary(self) -> Self:
        if self.primary not in self.verifiers:
            raise ValueError(f"`primary` is {self.primary!r}, which is none of its verifiers")
        return self

    @property
    def pass_rate(self) -> float:
        """The primary verifier's pass rate."""
        return self.verifiers[self.primary].pass_rate

    def metric_by(self, view: str) -> str:
        """Return the name of a verifier's rate."""
        return TIERS["tier5"].headline_by(view, self.primary)

    @property
    def values(self) -> dict[str, float]:
        """Its values by metric, the primary verifier's rate first."""
        views = sorted(self.verifiers, key=lambda view: view != self.primary)
        rates = {self.metric_by(view): self.verifiers[view].pass_rate for view in views}
        others = [m for m in TIERS["tier5"].metrics if not m.is_secondary and m.name not in rates]
        return rates | stored_values(self, others)

    @property
    def same(self) -> dict[str, Any]:
        """Data, verifiers, and how completions were made."""
        return {
            **super().same,
            "primary verifier": self.primary,
            "verifiers": self.views,
            "answer_after": self.answer_after,
            "decoding": {key: v for key, v in self.decoding.items() if key != "engine"},
        }

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The intervals of pass rates."""
        return {
            self.metric_by(view): (rate.low, rate.high)
            for view, rate in self.verifiers.items()
            if rate.low is not None and rate.high is not None
        }


class PassRateMean(FileModel):
    """Unweighted mean over all tasks."""

    pass_rate: Rate | None = None


class Tier5File(TierFile):
    """`tier5_verified.json`."""

    overall: PassRateMean | None = None
    sandbox: str | None = None
    generation_tasks: dict[str, GenerationEntry] = Field(min_length=1)


class VerdictEntry(FileModel):
    """A verifier's verdict on a completion."""

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
    prompt_tokens: Count
    completion_tokens: Count
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
    """Yield the completions of a task with their verdicts, in the order of the file.

    Args:
        folder: Folder of the checkpoint's results.

    Raises:
        ResultsError: The file is missing or cannot be read, or a line is no such record.
    """
    path = folder / FOLDER / task / RESULTS
    for _, completion in read_records(path, VerifiedCompletion, COLLECT_AGAIN):
        yield completion
