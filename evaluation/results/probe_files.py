"""Tier4's files: the summary of rates and checks, and the answers to probes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from evaluation.results.files import COLLECT_AGAIN, FileModel, optional, read_records, unusable
from evaluation.results.tier_files import Rate, TierFile, measured
from evaluation.settings.check_kinds import CheckKind
from evaluation.settings.tiers import TIERS

if TYPE_CHECKING:

    class _Rates(FileModel):
        """Rates of prompts."""

else:
    _Rates = measured(FileModel, TIERS["tier4"].metrics, "{}.")


class CategoryRates(_Rates):
    """Shares of prompts; null where no prompt counts for a rate."""

    prompts: int | None = optional("Prompts of the category.", ge=0)

    @property
    def rates(self) -> dict[str, float | None]:
        """All rates in the file, including those that an external program defines."""
        known = type(self).model_fields
        given = {name: getattr(self, name) for name in known if name in self.model_fields_set}
        return {k: v for k, v in {**given, **(self.model_extra or {})}.items() if _is_rate(k)}

    @model_validator(mode="after")
    def _check_external_rates(self) -> Self:
        for name, value in (self.model_extra or {}).items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if _is_rate(name) and value is not None and not (is_number and 0 <= value <= 1):
                raise ValueError(f"{name} is {value!r}, not a number from 0 to 1")
        return self


def _is_rate(name: str) -> bool:
    return name.endswith("_rate")


class OverallRates(CategoryRates):
    """Shares of all prompts except those with `headline: false`, which count for their category only."""

    all_checks_pass_rate: Rate = Field(description="Share of answers that pass all checks.")


class PromptCheck(FileModel):
    """One check of an answer."""

    kind: CheckKind = Field(description="The kind of the check; rates count checks by kind.")
    passed: bool = Field(description="Whether the answer passes.")
    note: str | None = optional(
        "For code: `unguarded` or `forged`, as in Tier5. `unfinished`: the thinking never ends."
    )


class PromptEntry(FileModel):
    """A prompt and the results of its answer."""

    id: str = Field(description="Name of the probe.")
    category: str = Field(description="Heading it is reported under.")
    headline: bool = optional("Whether it counts for `summary`.", True)
    checks: dict[str, PromptCheck] = Field(description="Each check by name.")
    passed: bool | None = optional("Whether all of them pass.")
    stop_reason: str = Field(description="`eos`, `stop_string` or `length`.")
    prompt_tokens: int | None = optional("Tokens of the prompt.", ge=0)
    response_tokens: int | None = optional("Tokens of the answer.", ge=0)
    response_words: int | None = optional("Words of the answer.", ge=0)
    response_characters: int | None = optional("Characters of the answer.", ge=0)


class ChatEntry(FileModel):
    """How the prompts of some probes were made, and how their answers are read."""

    probes: tuple[str, ...] = Field(description="Names of the probes.")
    chat_template: str = Field(description="Jinja2 template of the prompts.")
    chat_template_kwargs: dict[str, Any] = optional("Variables that the template reads.", {})
    stop: tuple[str, ...] = optional("Strings at which answers are cut.", ())
    answer_after: str | None = optional("Checks read what follows this text.")


class Tier4File(TierFile):
    """`tier4_sft_native.json`."""

    summary: OverallRates = Field(description="Rates over all prompts of the headline.")
    by_category: dict[str, CategoryRates] | None = optional("By category.")
    prompts: tuple[PromptEntry, ...] | None = optional("Each prompt.")
    chats: tuple[ChatEntry, ...] = optional("How prompts were made and answers read.", ())
    unfinished: int = optional("Answers whose thinking never ends; they pass no check.", 0, ge=0)
    data: Any = optional("Fingerprint of the probes.")
    data_checksum: Any = optional("Checksums of the scored prompts.")

    @model_validator(mode="after")
    def _distinct_prompts(self) -> Self:
        known: set[str] = set()
        for number, prompt in enumerate(self.prompts or ()):
            if prompt.id in known:
                raise ValueError(f"prompts.{number}: the id {prompt.id!r} appears twice")
            known.add(prompt.id)
        return self

    @property
    def same(self) -> dict[str, Any]:
        """The prompts."""
        return {"prompts": self.data_checksum}

    def _lacking(self) -> str | None:
        return None if self.prompts else "prompts is empty"


class Generation(FileModel):
    """A prompt and its answer."""

    id: str = Field(description="Name of the probe.")
    category: str | None = optional("Heading it is reported under.")
    prompt: str = Field(description="The conversation as the model read it.")
    response: str = Field(description="The answer, as it was generated.")
    stop_reason: str | None = optional("`eos`, `stop_string` or `length`.")
    prompt_tokens: int | None = optional("Tokens of the prompt.", ge=0)
    response_tokens: int | None = optional("Tokens of the answer.", ge=0)


def read_generations(path: Path) -> dict[str, Generation]:
    """Read Tier4's completions by the id of their prompt, in the order of the file.

    Raises:
        ResultsError: A line is no such record, or an id occurs twice; names the line.
    """
    generations: dict[str, Generation] = {}
    for where, generation in read_records(path, Generation, COLLECT_AGAIN):
        if generation.id in generations:
            raise unusable(where, f"the id {generation.id!r} appears twice")
        generations[generation.id] = generation
    return generations
