"""Tier4's files: the summary of rates and checks, and the answers to probes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from evaluation.checks.declared import CheckKind
from evaluation.results.files import COLLECT_AGAIN, FileModel, read_records, unusable
from evaluation.results.tier_files import Count, Rate, TierFile, measured
from evaluation.settings.tiers import TIERS

if TYPE_CHECKING:

    class _Rates(FileModel):
        """Rates of prompts."""

else:
    _Rates = measured(FileModel, TIERS["tier4"].metrics)


class CategoryRates(_Rates):
    """Shares of prompts; null where no prompt counts for a rate."""

    prompts: Count | None = None

    @property
    def rates(self) -> dict[str, float | None]:
        """All rates in the file, including those that an external program defines."""
        fields = type(self).model_fields
        given = {name: getattr(self, name) for name in fields if name in self.model_fields_set}
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

    all_checks_pass_rate: Rate


class PromptCheck(FileModel):
    """One check of an answer."""

    kind: CheckKind
    passed: bool
    note: str | None = None


class PromptEntry(FileModel):
    """A prompt and the results of its answer."""

    id: str
    category: str
    headline: bool = True
    checks: dict[str, PromptCheck]
    passed: bool | None = None
    stop_reason: str
    prompt_tokens: Count | None = None
    response_tokens: Count | None = None
    response_words: Count | None = None
    response_characters: Count | None = None


class ChatEntry(FileModel):
    """How the prompts of some probes were made, and how their answers are read."""

    probes: tuple[str, ...]
    chat_template: str
    chat_template_kwargs: dict[str, Any] = {}
    stop: tuple[str, ...] = ()
    answer_after: str | None = None


class Tier4File(TierFile):
    """`tier4_sft_native.json`."""

    summary: OverallRates
    by_category: dict[str, CategoryRates] | None = None
    prompts: tuple[PromptEntry, ...] | None = None
    chats: tuple[ChatEntry, ...] = ()
    unfinished: Count = 0
    data: Any = None
    data_checksum: Any = None

    @model_validator(mode="after")
    def _distinct_prompts(self) -> Self:
        seen: set[str] = set()
        for number, prompt in enumerate(self.prompts or ()):
            if prompt.id in seen:
                raise ValueError(f"prompts.{number}: the id {prompt.id!r} appears twice")
            seen.add(prompt.id)
        return self

    @property
    def same(self) -> dict[str, Any]:
        """The prompts."""
        return {"prompts": self.data_checksum}

    def _lacking(self) -> str | None:
        return None if self.prompts else "prompts is empty"


class Generation(FileModel):
    """A prompt and its answer."""

    id: str
    category: str | None = None
    prompt: str
    response: str
    stop_reason: str | None = None
    prompt_tokens: Count | None = None
    response_tokens: Count | None = None


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
