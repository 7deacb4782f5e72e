"""The files on generated answers: Tier4's and Tier5's summaries, and Tier4's completions."""

from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from evaluation.results.files import SCORE_AGAIN, FileModel, parse_model, read_text, unusable
from evaluation.results.tier_files import ItemEntry, Rate, TierFile
from evaluation.settings.check_kinds import Kind


class CategoryRates(FileModel):
    """Shares of prompts; null where no prompt counts for a rate."""

    prompts: int | None = Field(None, ge=0, description="Prompts of the category.")
    instruction_match_rate: Rate | None = Field(
        None, description="Share of answers with the right content."
    )
    all_checks_pass_rate: Rate | None = Field(
        None, description="Share of answers that pass all checks."
    )
    format_valid_rate: Rate | None = Field(
        None, description="Share of answers in the required format."
    )
    chat_clean_rate: Rate | None = Field(
        None, description="Share of answers without chat artifacts."
    )
    code_parse_rate: Rate | None = Field(
        None, description="Share of answers whose code is valid Python."
    )
    json_valid_rate: Rate | None = Field(
        None, description="Share of answers that are JSON of the required schema."
    )
    truncated_rate: Rate | None = Field(
        None, description="Share of answers that reached the token limit."
    )

    def rates(self) -> dict[str, float | None]:
        """Return all rates that the file has, those of an external program's own among them."""
        known = type(self).model_fields
        given = {name: getattr(self, name) for name in known if name in self.model_fields_set}
        return {k: v for k, v in {**given, **(self.model_extra or {})}.items() if _is_rate(k)}

    @model_validator(mode="after")
    def _own_rates(self) -> Self:
        for name, value in (self.model_extra or {}).items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if _is_rate(name) and value is not None and not (is_number and 0 <= value <= 1):
                raise ValueError(f"{name} is {value!r}, not a number from 0 to 1")
        return self


def _is_rate(name: str) -> bool:
    return name.endswith("_rate")


class OverallRates(CategoryRates):
    """Shares of all prompts but those that `headline: false` leaves to their category."""

    all_checks_pass_rate: Rate = Field(description="Share of answers that pass all checks.")


class PromptCheck(FileModel):
    """One check of an answer."""

    kind: Kind = Field(description="The kind of the check; rates count checks by kind.")
    passed: bool = Field(description="Whether the answer passes.")
    note: str | None = Field(None, description="For code: `unguarded` or `forged`, as in Tier5.")


class PromptEntry(FileModel):
    """A prompt and what became of its answer."""

    id: str = Field(description="Name of the probe.")
    category: str = Field(description="Heading it is reported under.")
    headline: bool = Field(True, description="Whether it counts for `summary`.")
    checks: dict[str, PromptCheck] = Field(description="Each check by name.")
    passed: bool | None = Field(None, description="Whether all of them pass.")
    stop_reason: str = Field(description="`eos`, `stop_string` or `length`.")
    prompt_tokens: int | None = Field(None, ge=0, description="Tokens of the prompt.")
    response_tokens: int | None = Field(None, ge=0, description="Tokens of the answer.")
    response_words: int | None = Field(None, ge=0, description="Words of the answer.")
    response_characters: int | None = Field(None, ge=0, description="Characters of it.")


class Tier4File(TierFile):
    """`tier4_sft_native.json`."""

    summary: OverallRates = Field(description="Rates over all prompts of the headline.")
    by_category: dict[str, CategoryRates] | None = Field(None, description="By category.")
    prompts: tuple[PromptEntry, ...] | None = Field(None, description="Each prompt.")
    chat_template: str | None = Field(None, description="Jinja2 template of the prompts.")
    stop: tuple[str, ...] | None = Field(None, description="Strings at which answers are cut.")
    answer_after: str | None = Field(None, description="Checks read what follows this text.")
    data: Any = Field(None, description="Fingerprint of the probes.")
    data_checksum: Any = Field(None, description="Checksums of the scored prompts.")

    @model_validator(mode="after")
    def _distinct_prompts(self) -> Self:
        seen: set[str] = set()
        for number, prompt in enumerate(self.prompts or ()):
            if prompt.id in seen:
                raise ValueError(f"prompts.{number}: the id {prompt.id!r} is there twice")
            seen.add(prompt.id)
        return self

    def _lacking(self) -> str | None:
        return None if self.prompts else "prompts is empty"


class Generation(FileModel):
    """A prompt and its answer."""

    id: str = Field(description="Name of the probe.")
    category: str | None = Field(None, description="Heading it is reported under.")
    prompt: str = Field(description="The conversation as the model read it.")
    response: str = Field(description="The answer, as it was generated.")
    stop_reason: str | None = Field(None, description="`eos`, `stop_string` or `length`.")
    prompt_tokens: int | None = Field(None, ge=0, description="Tokens of the prompt.")
    response_tokens: int | None = Field(None, ge=0, description="Tokens of the answer.")


def read_generations(path: Path) -> dict[str, Generation]:
    """Return answers by the id of their prompt.

    Raises:
        ResultsError: a line is no such record, or an id is there twice; names the line.
    """
    found: dict[str, Generation] = {}
    # Only a line feed ends a line: JSON leaves other separators of lines within texts as they are.
    for number, line in enumerate(read_text(path, SCORE_AGAIN).split("\n"), start=1):
        if not line:
            continue
        where = path.with_name(f"{path.name}, line {number}")
        one = parse_model(where, line, Generation, SCORE_AGAIN)
        if one.id in found:
            raise unusable(where, f"the id {one.id!r} is there twice")
        found[one.id] = one
    return found


class MeanRate(FileModel):
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
    pass_at_k: dict[str, MeanRate] = Field(
        {}, description="pass@k: probability that one of k samples passes, by k."
    )
    cons_at_n: MeanRate | None = Field(
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
    strata: dict[str, dict[str, MeanRate]] = Field(
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
    sandbox: str | None = Field(
        None, description="Sandbox in which programs ran; null without programs."
    )
    generation_tasks: dict[str, GenerationEntry] = Field(
        min_length=1, description="Each task by name."
    )
