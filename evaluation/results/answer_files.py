"""The files on generated answers: Tier4's and Tier5's summaries, and Tier4's completions."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from evaluation.results.files import (
    COLLECT_AGAIN,
    FileModel,
    optional,
    parse_model,
    read_text,
    unusable,
)
from evaluation.results.tier_files import ItemEntry, Rate, TierFile, measured, stored_values
from evaluation.settings.check_kinds import CheckKind
from evaluation.settings.tiers import TIERS

if TYPE_CHECKING:

    class _Rates(FileModel):
        """Rates of prompts."""

    class _CompletionMetrics(ItemEntry):
        """An entry with the metrics of completions."""

else:
    _Rates = measured(FileModel, TIERS["tier4"].metrics, "{}.")
    _CompletionMetrics = measured(
        ItemEntry, [metric for metric in TIERS["tier5"].metrics if metric.description], "{}."
    )


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
    # Only a line feed ends a line: texts in JSON may contain other line separators.
    for number, line in enumerate(read_text(path, COLLECT_AGAIN).split("\n"), start=1):
        if not line:
            continue
        where = path.with_name(f"{path.name}, line {number}")
        model = parse_model(where, line, Generation, COLLECT_AGAIN)
        if model.id in generations:
            raise unusable(where, f"the id {model.id!r} appears twice")
        generations[model.id] = model
    return generations


class MeanRate(FileModel):
    """A mean over prompts with its 95 % interval; no bounds for a single prompt."""

    value: Rate | None = Field(description="The mean; null if there are no verdicts.")
    stderr: float | None = optional("Standard error, over prompts.", ge=0)
    low: Rate | None = optional("Lower end of the interval.")
    high: Rate | None = optional("Upper end of the interval.")
    prompts: int | None = optional("Prompts with verdicts.", ge=0)


class VerifierRates(FileModel):
    """Rates of a task's completions by one verifier."""

    pass_rate: Rate = Field(description="Mean score of a prompt's samples, over prompts.")
    stderr: float | None = optional("Its standard error, over prompts.", ge=0)
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
    empty_rate: Rate | None = optional("Share of completions without any text.")
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
        """Return the headline's name for the primary verifier's rate, `<headline>_<verifier>` for another's."""
        headline = TIERS["tier5"].headline
        return headline if view == self.primary else f"{headline}_{view}"

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
