"""Tier5's files: the summary of rates by verifier, and each task's completions with their verdicts."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from evaluation.results.files import COLLECT_AGAIN, FileModel, optional, read_records
from evaluation.results.tier_files import ItemEntry, Rate, TierFile, measured, stored_values
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
        ItemEntry, [metric for metric in TIERS["tier5"].metrics if metric.description], "{}."
    )


class MeanRate(FileModel):
    """A mean over prompts with its 95 % interval; no bounds for a single prompt."""

    value: Rate | None = Field(description="The mean; null if there are no verdicts.")
    stderr: float | None = optional(
        "Standard error over prompts, with their clusters and strata; null where all are alike.",
        ge=0,
    )
    low: Rate | None = optional("Lower end of the interval.")
    high: Rate | None = optional("Upper end of the interval.")
    prompts: int | None = optional("Prompts with verdicts.", ge=0)


class VerifierRates(FileModel):
    """Rates of a task's completions by one verifier."""

    pass_rate: Rate = Field(description="Mean score of a prompt's samples, over prompts.")
    stderr: float | None = optional(
        "Its standard error over prompts, with their clusters and strata; null where all are alike.",
        ge=0,
    )
    low: Rate | None = optional("Lower end of its 95 % interval.")
    high: Rate | None = optional("Upper end of its 95 % interval.")
    weighted_rate: Rate | None = optional(
        "Mean score weighted by the instructions of a prompt: `inst_level_*_acc`."
    )
    format_rate: Rate | None = optional("Share with an answer in its format.")
    right_but_format_rate: float | None = optional(
        "Share for which this verifier finds no answer, but another one finds the right answer."
    )
    errors: int = optional("Samples on which the verifier failed.", 0, ge=0)
    unguarded: int = optional(
        "Programs whose tests need more than plain data, so that the plain run alone decided.",
        0,
        ge=0,
    )
    forged: int = optional("Programs that pass the plain run and fail the guarded run.", 0, ge=0)
    over_limits: int = optional(
        "Completions whose verification takes more time or memory than allowed; they count as wrong.",
        0,
        ge=0,
    )
    pass_at_k: dict[str, MeanRate] = optional(
        "pass@k: probability that one of k samples passes, by k.", {}
    )
    cons_at_n: MeanRate | None = optional("Share of prompts whose most frequent answer passes.")
    distinct_answers: float | None = optional("Mean number of different answers.", ge=0)


class OtherEngine(FileModel):
    """The engine that wrote the completions in place of the built-in one, and how far the two agree."""

    name: str = Field(description="`vllm`, or the name that was given at the import.")
    version: str | None = optional("Its version.")
    imported: str | None = optional("File that the completions were imported from.")
    asked: int | None = optional("Prompts that both engines completed, greedily.", ge=0)
    equal: int | None = optional("How many of them have the same completion.", ge=0)

    @property
    def title(self) -> str:
        """Its name, with its version if that is recorded."""
        return self.name if self.version is None else f"{self.name} {self.version}"


class WindowEntry(FileModel):
    """How many tokens a prompt and its completion may have together."""

    tokens: int = Field(gt=0, description="Tokens of the window.")
    trained: int | None = optional("Tokens of a training sequence, if recorded at prefill.")


class GenerationEntry(_CompletionMetrics):
    """A task of Tier5."""

    primary: str = Field(description="The verifier that objectives are decided on.")
    verifiers: dict[str, VerifierRates] = Field(
        min_length=1, description="Rates of each verifier, by its name."
    )
    views: dict[str, Any] = optional("The verifiers' settings.", {})
    answer_after: str | None = optional("Verifiers read what follows this text.")
    decoding: dict[str, Any] = optional("Sampling, stop strings and token limit.", {})
    engine: OtherEngine | None = optional("Engine of the completions, if not the built-in one.")
    prompts: int = Field(ge=0, description="Prompts that were completed.")
    samples: int = Field(ge=0, description="Number of all completions.")
    too_long: tuple[str, ...] = optional("Prompts that do not fit into the context window.", ())
    shortened: tuple[str, ...] = optional(
        "Prompts that leave fewer than `max_new_tokens` in the window.", ()
    )
    window: WindowEntry | None = optional("The window for generation.")
    empty_rate: Rate | None = optional(
        "Share of completions without any text to verify; those with unfinished thinking count."
    )
    unfinished: int = optional(
        "Completions whose thinking never ends; they count as wrong.", 0, ge=0
    )
    right_by_any_rate: Rate | None = optional(
        "Share that a built-in verifier passes; none if all give another harness's verdicts."
    )
    strata: dict[str, dict[str, MeanRate]] = optional("The primary pass rate by group.", {})

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

    pass_rate: Rate | None = optional("Mean of the primary pass rates.")


class Tier5File(TierFile):
    """`tier5_verified.json`."""

    overall: PassRateMean | None = optional("Mean over tasks.")
    sandbox: str | None = optional("Sandbox in which programs ran; null without programs.")
    generation_tasks: dict[str, GenerationEntry] = Field(min_length=1, description="By name.")


class VerdictEntry(FileModel):
    """A verifier's verdict on a completion."""

    credit: Rate | None = Field(description="Its score; null if the verifier failed.")
    answer: str | None = optional("The answer that the verifier read.")
    reason: str | None = optional("Why it has not the full score.")


class VerifiedCompletion(FileModel):
    """A completion with the verdicts on it."""

    id: str = Field(description="Id of the prompt.")
    sample: int = Field(ge=0, description="Number of the sample.")
    prompt: str = Field(description="The prompt as the model read it.")
    completion: str = Field(description="The completion, cut at stop strings.")
    stop_reason: str = Field(description="`eos`, `stop_string` or `length`.")
    prompt_tokens: int = Field(ge=0, description="Tokens of the prompt.")
    completion_tokens: int = Field(ge=0, description="Tokens of the completion.")
    verdicts: dict[str, VerdictEntry] = Field(description="Each verifier's verdict by its name.")

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
