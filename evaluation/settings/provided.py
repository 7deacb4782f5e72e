"""Tasks of lighteval and lm-evaluation-harness (the providers), by their names there."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from evaluation.errors import no_such
from evaluation.settings.chat import ChatSettings, check_chat
from evaluation.settings.generation import ANSWER_AFTER, CompletionTask, GenerationTask, Sampling
from evaluation.settings.model import Boolean, Count, ExpandedPath, Settings, Text, Tokens
from evaluation.settings.names import Label
from evaluation.settings.sources import Normalization, Shots
from evaluation.settings.tiers import TaskKind
from evaluation.settings.verifiers import Provided

ProviderName = Literal["lighteval", "lm_eval"]

VERSIONS: Mapping[str, str] = {"lighteval": "0.13.0", "lm_eval": "0.4.13"}
"""The version of each provider that is run; its lock file installs it."""

CLUSTER: Any = Field(
    None,
    description="Template over the provider's document: a sampled group, e.g. `{{ passage }}`. "
    "Default: docs/verdicts.md.",
)
"""The key `cluster` of a provider's task, whether its answers are generated or ranked."""


class Providers(Settings):
    """Paths of the providers' Pythons; `make providers` installs them at the defaults."""

    lighteval: ExpandedPath = Field(".venv-lighteval/bin/python", description="Python that has it.")
    lm_eval: ExpandedPath = Field(".venv-lm-eval/bin/python", description="Python that has it.")


class SettledTask(CompletionTask):
    """A provider's task, completed by what the provider reported at prefill."""

    verifiers: Mapping[str, Provided]


class _ByName(Settings):
    """A task by its name in a provider."""

    ASKED: ClassVar[tuple[str, ...]]
    """Keys that decide what a model is asked; their order is part of the fingerprint."""

    provider: ProviderName = Field(description="`lighteval` or `lm_eval`.")
    task: Text = Field(description="The provider's name of a task or group of tasks.")
    num_fewshot: Shots | None = Field(None, description="Solved examples; else the provider's.")
    group: Label | None = Field(None, description="Name that objectives refer to.")

    @property
    def version(self) -> str:
        return VERSIONS[self.provider]

    @property
    def definition(self) -> dict[str, Any]:
        cluster = getattr(self, "cluster", None)
        return self.asked | ({"cluster": cluster} if cluster else {})

    @property
    def asked(self) -> dict[str, Any]:
        asked = self.model_dump(mode="json")
        keys = [key for key in self.ASKED if (key, asked[key]) != ("kind", "ranked")]
        return {**{key: asked[key] for key in keys}, "version": self.version}


class ProviderTask(_ByName, ChatSettings):
    """A task by its name in a provider, which supplies all settings that are not given here."""

    ASKED = (
        *("provider", "task", "chat", "num_fewshot", "max_new_tokens"),
        "limit",
    )

    chat: Boolean = Field(False, description="Whether it is put into the chat template.")
    system: Text | None = Field(None, description="System's turn, where there is none.")
    stop: tuple[Text, ...] | None = Field(None, description="Stop strings; else the provider's.")
    max_new_tokens: Tokens | None = Field(None, description="Most tokens of a completion.")
    sampling: Sampling | None = Field(None, description="How tokens are drawn; else greedily.")
    cluster: Text | None = CLUSTER
    metrics: tuple[Text, ...] = Field((), description="Metrics by the provider's names; else all.")
    primary: Text | None = Field(None, description="Metric of objectives; else the first.")
    answer_after: Text | None = ANSWER_AFTER
    limit: Count = Field(12_000, description="Maximum number of prompts, per task.")

    @property
    def asked(self) -> dict[str, Any]:
        system = {"system": self.system} if self.system else {}
        return super().asked | system | self.chat_definition

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_chat(self, self.chat)
        if self.primary is not None and self.metrics and self.primary not in self.metrics:
            raise ValueError(f"primary: {no_such('metric', self.primary, self.metrics)}")
        return self

    @property
    def runs_programs(self) -> bool:
        """False, as tasks whose metrics run programs are refused."""
        return False

    @property
    def decoding(self) -> dict[str, Any]:
        """The settings that decide the completions, as far as they are known before prefill."""
        own = self.model_dump(mode="json", include={"stop", "max_new_tokens"})
        drawn = (self.sampling or Sampling()).model_dump(mode="json")
        return {**self.asked, **own, "sampling": drawn}

    def settled(self, reported: Mapping[str, Any]) -> SettledTask:
        """Complete the task by what meta.json has under `provider`; the suite's keys come first."""
        about = {key: getattr(self, key) for key in ("provider", "version", "task")}
        metrics = self.metrics or reported["metrics"]
        return SettledTask(
            stop=tuple(reported["stop"]) if self.stop is None else self.stop,
            max_new_tokens=self.max_new_tokens or reported["max_new_tokens"],
            sampling=self.sampling or Sampling(),
            verifiers={metric: Provided(**about, metric=metric) for metric in metrics},
            primary=self.primary,
            group=self.group,
            answer_after=self.answer_after,
        )


class ProviderChoices(_ByName):
    """A task of ranked choices by its name in a provider, which supplies contexts and candidates."""

    ASKED = ("provider", "task", "num_fewshot", "kind", "limit")

    kind: TaskKind = Field("ranked", description="`gold`: only the right answer is scored.")
    primary: Normalization | None = Field(None, description="Of the accuracy; else `raw`.")
    limit: Count = Field(12_000, description="Maximum number of items, per task.")
    cluster: Text | None = CLUSTER


def settled_task(task: GenerationTask | ProviderTask, meta: Mapping[str, Any]) -> CompletionTask:
    """Return the task itself, or a provider's task completed by what was reported at prefill."""
    return task.settled(meta["provider"]) if isinstance(task, ProviderTask) else task
