"""Tier5: tasks whose answers are generated and verified."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from evaluation.errors import no_such
from evaluation.settings.chat import CHAT_KEYS, ChatSettings, check_chat
from evaluation.settings.model import (
    LARGEST_WINDOW,
    Boolean,
    Count,
    Fraction,
    Integer,
    Seed,
    Settings,
    Text,
    Tokens,
)
from evaluation.settings.names import Label
from evaluation.settings.sources import Shots, Source
from evaluation.settings.verifiers import AnyVerifier, Program, Verifier


class Sampling(Settings):
    """How tokens are drawn: greedily at temperature 0."""

    temperature: Fraction = Field(0.0, ge=0, le=100, description="0: greedily.")
    top_p: Fraction = Field(1.0, gt=0, le=1, description="Probability of the tokens drawn.")
    top_k: Integer = Field(0, ge=0, le=LARGEST_WINDOW, description="Likeliest tokens; 0: all.")
    n: Integer = Field(1, gt=0, le=10**6, description="Completions of each prompt.")
    seed: Seed = Field(0, description="Another seed gives other completions.")

    @model_validator(mode="after")
    def _greedy_once(self) -> Self:
        if self.temperature == 0 and (self.n > 1 or self.top_k or self.top_p < 1):
            raise ValueError(
                "at temperature 0 the likeliest token is taken, so that all completions are the same: "
                "set `temperature`, or remove `n`, `top_p` and `top_k`"
            )
        return self


ANSWER_AFTER = Field(
    None,
    description="End mark of thinking, such as `</think>`: verifiers read what follows the last one. "
    "A completion without it is `unfinished`. Default: a thought with which it begins is left out.",
)


class CompletionTask(Settings):
    """The settings that generation and verification need of a task, wherever its prompts come from."""

    stop: tuple[Text, ...]
    max_new_tokens: Integer
    sampling: Sampling
    verifiers: Mapping[str, AnyVerifier]
    primary: str | None
    group: str | None
    answer_after: Text | None

    @property
    def views(self) -> Mapping[str, AnyVerifier]:
        """Its verifiers, the primary one first."""
        primary = self.primary or next(iter(self.verifiers))
        return {primary: self.verifiers[primary], **self.verifiers}

    @property
    def runs_programs(self) -> bool:
        return any(isinstance(verifier, Program) for verifier in self.verifiers.values())

    @property
    def decoding(self) -> dict[str, Any]:
        return self.model_dump(mode="json", include={"sampling", "stop", "max_new_tokens"})

    @property
    def verifying(self) -> dict[str, Any]:
        return self.model_dump(mode="json", include={"verifiers"})


class GenerationTask(Source, ChatSettings, CompletionTask):
    """Prompts, and verifiers of their completions."""

    VIEWS: ClassVar[frozenset[str]] = Source.VIEWS | {
        *("primary", "verifiers", "answer_after"),  # of verification
        *("sampling", "stop"),  # of generation
    }

    let: dict[str, Text] = Field({}, description="Expressions for the templates, in order.")
    id: Text | None = Field(None, description="Template: a prompt's id; else its row number.")
    prompt: Text = Field(description="Template of the question, or the user's turn.")
    chat: Boolean = Field(description="Whether it is put into the chat template.")
    system: str | None = Field(None, description="Template of the system's turn.")
    answer: Text | None = Field(None, description="Template of a solved example's answer.")
    num_fewshot: Shots = Field(0, description="Solved examples before a question.")
    fewshot_split: Text = Field("train", description="Split the examples are taken from.")
    fewshot_seed: Seed | None = Field(None, description="Seed to draw them; if none, the first.")
    fewshot_anew: Boolean = Field(
        False, description="Draw them for each question, as lm-evaluation-harness does."
    )
    fewshot_examples: tuple[dict[str, Any], ...] = Field((), description="Examples themselves.")
    fewshot_same: Text | None = Field(
        None, description="Template: what they share with the question, e.g. `{{ category }}`."
    )
    description: str = Field("", description="Template put before the examples.")
    between: str = Field("\n\n", description="Separator between examples.")
    stop: tuple[Text, ...] = Field((), description="Strings that end a completion.")
    max_new_tokens: Tokens = Field(description="Maximum tokens of a completion.")
    sampling: Sampling = Field(Sampling(), description="How tokens are drawn; greedily by default.")
    document: dict[str, Text] = Field({}, description="What verifiers read: `gold`, `tests` …")
    strata: dict[Label, Text] = Field({}, description="Templates: fixed groups, e.g. `level`.")
    cluster: Text | None = Field(None, description="Template of a sampled group, e.g. a passage.")
    verifiers: dict[Label, Verifier] = Field(min_length=1, description="Verifiers by name.")
    primary: str | None = Field(None, description="Verifier of objectives; else the first.")
    answer_after: Text | None = ANSWER_AFTER
    limit: Count = Field(12_000, description="Maximum number of prompts.")
    group: Label | None = Field(None, description="Name that objectives refer to.")

    @property
    def asked(self) -> dict[str, Any]:
        views = {*self.VIEWS, *CHAT_KEYS, "document", "strata", "cluster"}
        views |= {key for key in ("fewshot_same", "fewshot_anew") if not getattr(self, key)}
        return self.model_dump(mode="json", exclude=views) | self.chat_definition

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.primary is not None and self.primary not in self.verifiers:
            raise ValueError(f"primary: {no_such('verifier', self.primary, self.verifiers)}")
        if self.num_fewshot and self.answer is None:
            raise ValueError("`num_fewshot` needs `answer`, the template of an example's answer")
        if self.fewshot_examples and len(self.fewshot_examples) < self.num_fewshot:
            raise ValueError(f"`fewshot_examples` are fewer than `num_fewshot: {self.num_fewshot}`")
        if self.fewshot_anew and (
            self.fewshot_seed is None or self.fewshot_same or self.fewshot_examples
        ):
            raise ValueError(
                "`fewshot_anew` draws from a split: give `fewshot_seed`, and neither `fewshot_same` nor "
                "`fewshot_examples`"
            )
        check_chat(self, self.chat)
        for name, verifier in self.verifiers.items():
            if lacking := set(verifier.NEEDS) - self.document.keys():
                raise ValueError(f"`verifiers.{name}` reads `document.{min(lacking)}`: not given")
        return self
