"""`tier5_verified.json`: what verifiers say of each generation task's completions."""

from typing import Any, Self

from pydantic import Field, model_validator

from evaluation.results.files import FileModel
from evaluation.results.tier_files import ItemEntry, Rate, TierFile


class Told(FileModel):
    """A mean over prompts with its 95 % interval; no bounds for a single prompt."""

    value: Rate | None = Field(description="The mean; null where no prompt could be judged.")
    stderr: float | None = Field(None, ge=0, description="Standard error, over prompts.")
    low: Rate | None = Field(None, description="Lower end of the interval.")
    high: Rate | None = Field(None, description="Upper end of the interval.")
    prompts: int | None = Field(None, ge=0, description="Prompts that it is over: judged ones.")


class VerifierRates(FileModel):
    """What one verifier says of a task's completions."""

    pass_rate: Rate = Field(description="Mean score of a prompt's samples, over prompts.")
    stderr: float | None = Field(None, ge=0, description="Its standard error, over prompts.")
    low: Rate | None = Field(None, description="Lower end of its 95 % interval.")
    high: Rate | None = Field(None, description="Upper end of its 95 % interval.")
    weighted_rate: Rate | None = Field(
        None, description="The same by weight, as instructions of a prompt: `inst_level_*_acc`."
    )
    format_rate: Rate | None = Field(None, description="Share with an answer in its format.")
    right_but_format_rate: float | None = Field(
        None,
        description="Share in which this verifier finds no answer, and another one the right one.",
    )
    errors: int = Field(0, ge=0, description="Samples on which the verifier failed.")
    unguarded: int = Field(
        0, ge=0, description="Programs that pass as Python, and whose objects are not looked at."
    )
    forged: int = Field(
        0, ge=0, description="Programs that only pass where they can change their tests."
    )
    pass_at_k: dict[str, Told] = Field({}, description="By k: one of k samples passes.")
    cons_at_n: Told | None = Field(None, description="The most frequent answer passes.")
    distinct_answers: float | None = Field(None, ge=0, description="Answers of a prompt, mean.")


class OtherEngine(FileModel):
    """What wrote the completions in place of this project's engine, and how far they agree."""

    name: str = Field(description="`vllm`.")
    version: str | None = Field(None, description="Its version.")
    asked: int = Field(ge=0, description="Prompts that both were asked, greedily.")
    equal: int = Field(ge=0, description="Those of them with the same answer.")


class GenerationEntry(ItemEntry):
    """A task of Tier5."""

    primary: str = Field(description="The verifier that objectives are decided on.")
    verifiers: dict[str, VerifierRates] = Field(min_length=1, description="Each by name.")
    views: dict[str, Any] = Field({}, description="The verifiers' settings.")
    answer_after: str | None = Field(None, description="Verifiers read what follows this text.")
    decoding: dict[str, Any] = Field({}, description="Sampling, stop strings and token limit.")
    engine: OtherEngine | None = Field(None, description="What wrote them, where it is another.")
    prompts: int = Field(ge=0, description="Prompts that were completed.")
    samples: int = Field(ge=0, description="Completions in all.")
    too_long: tuple[str, ...] = Field((), description="Prompts that do not fit the window.")
    truncated_rate: Rate | None = Field(None, description="Share that reached the token limit.")
    empty_rate: Rate | None = Field(None, description="Share that is nothing but white space.")
    mean_tokens: float | None = Field(None, ge=0, description="Tokens of a completion, mean.")
    right_by_any_rate: Rate | None = Field(None, description="Share that some verifier passes.")
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
    cage: str | None = Field(None, description="What programs were run in; null without programs.")
    generation_tasks: dict[str, GenerationEntry] = Field(
        min_length=1, description="Each task by name."
    )
