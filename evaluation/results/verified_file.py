"""`tier5_verified.json`: what verifiers say of each generation task's completions."""

from typing import Any, Self

from pydantic import Field, model_validator

from evaluation.results.files import FileModel
from evaluation.results.tier_files import ItemEntry, Rate, TierFile


class Told(FileModel):
    """A mean over prompts with its 95 % interval; no bounds for a single prompt."""

    value: Rate | None = Field(description="The mean; null if there are no verdicts.")
    stderr: float | None = Field(None, ge=0, description="Standard error, over prompts.")
    low: Rate | None = Field(None, description="Lower end of the interval.")
    high: Rate | None = Field(None, description="Upper end of the interval.")
    prompts: int | None = Field(None, ge=0, description="Prompts with verdicts.")


class VerifierRates(FileModel):
    """What one verifier says of a task's completions."""

    pass_rate: Rate = Field(description="Mean score of a prompt's samples, over prompts.")
    stderr: float | None = Field(None, ge=0, description="Its standard error, over prompts.")
    low: Rate | None = Field(None, description="Lower end of its 95 % interval.")
    high: Rate | None = Field(None, description="Upper end of its 95 % interval.")
    weighted_rate: Rate | None = Field(
        None, description="Mean score weighted by the instructions of a prompt: `inst_level_*_acc`."
    )
    format_rate: Rate | None = Field(None, description="Share with an answer in its format.")
    right_but_format_rate: float | None = Field(
        None,
        description="Share for which this verifier finds no answer, and another one the right answer.",
    )
    errors: int = Field(0, ge=0, description="Samples on which the verifier failed.")
    unguarded: int = Field(
        0,
        ge=0,
        description="Programs that pass the plain run, where the guarded run cannot check all values.",
    )
    forged: int = Field(
        0, ge=0, description="Programs that pass the plain run and fail the guarded run."
    )
    pass_at_k: dict[str, Told] = Field(
        {}, description="pass@k: probability that one of k samples passes, by k."
    )
    cons_at_n: Told | None = Field(
        None, description="Share of prompts whose most frequent answer passes."
    )
    distinct_answers: float | None = Field(
        None, ge=0, description="Different answers of a prompt, mean."
    )


class OtherEngine(FileModel):
    """What wrote the completions in place of this project's engine, and how far they agree."""

    name: str = Field(description="`vllm`.")
    version: str | None = Field(None, description="Its version.")
    asked: int = Field(ge=0, description="Prompts that both engines completed, greedily.")
    equal: int = Field(ge=0, description="Those of them with the same completion.")


class GenerationEntry(ItemEntry):
    """A task of Tier5."""

    primary: str = Field(description="The verifier that objectives are decided on.")
    verifiers: dict[str, VerifierRates] = Field(
        min_length=1, description="Results of each verifier, by its name."
    )
    views: dict[str, Any] = Field({}, description="The verifiers' settings.")
    answer_after: str | None = Field(None, description="Verifiers read what follows this text.")
    decoding: dict[str, Any] = Field({}, description="Sampling, stop strings and token limit.")
    engine: OtherEngine | None = Field(
        None, description="The engine that wrote the completions, if not the built-in one."
    )
    prompts: int = Field(ge=0, description="Prompts that were completed.")
    samples: int = Field(ge=0, description="Completions in all.")
    too_long: tuple[str, ...] = Field(
        (), description="Prompts that do not fit into the context window."
    )
    truncated_rate: Rate | None = Field(
        None, description="Share of completions that reached the token limit."
    )
    empty_rate: Rate | None = Field(None, description="Share of completions without any text.")
    mean_tokens: float | None = Field(None, ge=0, description="Tokens of a completion, mean.")
    right_by_any_rate: Rate | None = Field(
        None, description="Share of completions that at least one verifier passes."
    )
    strata: dict[str, dict[str, Told]] = Field(
        {}, description="The primary pass rate by grouping and group."
    )

    @model_validator(mode="after")
    def _has_primary(self) -> Self:
        if self.primary not in self.verifiers:
            raise ValueError(f"`primary` is {self.primary!r}, which is none of its verifiers")
        return self

    @property
    def pass_rate(self) -> float:
        return self.verifiers[self.primary].pass_rate


class PassRateMean(FileModel):
    """Unweighted mean over all tasks."""

    pass_rate: Rate | None = Field(None, description="Mean of the primary pass rates.")


class Tier5File(TierFile):
    """`tier5_verified.json`."""

    overall: PassRateMean | None = Field(None, description="Mean over tasks.")
    cage: str | None = Field(
        None, description="Sandbox in which programs ran; null without programs."
    )
    generation_tasks: dict[str, GenerationEntry] = Field(
        min_length=1, description="Each task by name."
    )
