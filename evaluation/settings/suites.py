"""What is evaluated: the items of each tier, read from `task_suites/*.yaml`.

Templates are Jinja2 over a dataset row. An *expression* is Jinja2 without braces and keeps its
type, so `choices: choices.text` is a list and `gold: label|int` an integer.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from evaluation.errors import ConfigError, did_you_mean, no_such
from evaluation.settings.chat import ChatSettings
from evaluation.settings.checks import Check
from evaluation.settings.generation import GenerationTask
from evaluation.settings.groups import Group
from evaluation.settings.model import Boolean, Settings, Text, Tokens, config_error
from evaluation.settings.names import Label, Name
from evaluation.settings.provided import ProviderChoices, ProviderTask
from evaluation.settings.sources import Attention, Slice, Task
from evaluation.settings.tiers import TIERS
from evaluation.settings.withdrawn import instead
from evaluation.settings.yaml_files import read_yaml
from evaluation.version import SUITES


class Message(Settings):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"] = Field(description="Role of the speaker.")
    content: str = Field(description="Text of the message.")


class Probe(ChatSettings):
    """A prompt for an SFT model and the checks its answer must pass."""

    category: Label = Field(description="Heading it is reported under.")
    messages: tuple[Message, ...] = Field(min_length=1, description="The conversation.")
    checks: tuple[Check, ...] = Field(min_length=1, description="What the answer must pass.")
    max_new_tokens: Tokens = Field(256, description="Maximum tokens of the answer.")
    stop: tuple[Text, ...] | None = Field(None, description="Stop strings; else the suite's.")
    answer_after: Text | None = Field(None, description="End mark of thinking; else the suite's.")
    headline: Boolean = Field(True, description="Whether it counts for the rates over all prompts.")

    @property
    def definition(self) -> dict[str, Any]:
        """What the model is asked; checks are left out, as stored answers are verified anew."""
        messages = self.model_dump(mode="json", include={"messages", "max_new_tokens"})
        return messages | self.chat_definition

    @model_validator(mode="after")
    def _asks(self) -> "Probe":
        last = self.messages[-1]
        if last.role != "user" or not last.content.strip():
            raise ValueError(
                "the last message must be the user's and not empty: the model answers it"
            )
        return self


def _origin(task: Any) -> str:
    keys = task if isinstance(task, dict) else getattr(task, "model_fields_set", ())
    return "[provided]" if "provider" in keys else "[own]"


AnyGenerationTask = Annotated[
    Annotated[GenerationTask, Tag("[own]")] | Annotated[ProviderTask, Tag("[provided]")],
    Discriminator(_origin),
]
"""A task that the suite writes out, or a provider's task by its name there."""

AnyTask = Annotated[
    Annotated[Task, Tag("[own]")] | Annotated[ProviderChoices, Tag("[provided]")],
    Discriminator(_origin),
]


Section = Literal["slices", "tasks", "probes", "generation_tasks"]


class Suite(ChatSettings):
    """Slices, tasks and probes under their names; `extends` adds another suite's.

    Two items cannot have one name, unless they are the same. To change an item of the extended
    suite, such as the number of questions of a task, give its keys under `overrides`.
    """

    extends: Label | None = Field(None, description="Suite whose items come first.")
    overrides: dict[Section, dict[str, dict[str, Any]]] = Field(
        {}, description="New values for its items' keys, by section and name."
    )
    attention: Attention = Field("block", description="What a token of a block can attend to.")
    system: Text | None = Field(None, description="System's turn of chats that have none.")
    stop: tuple[Text, ...] = Field((), description="Stop strings of probes.")
    answer_after: Text | None = Field(
        None,
        description="End mark of thinking, such as `</think>`: what follows the last one is checked and "
        "verified. Default for probes: the chat template's mark.",
    )
    slices: dict[Name, Slice] = Field({}, description="Tier2: texts.")
    tasks: dict[Name, AnyTask] = Field({}, description="Tier3: tasks of ranked choices.")
    probes: dict[Label, Probe] = Field({}, description="Tier4: prompts.")
    generation_tasks: dict[Name, AnyGenerationTask] = Field(
        {}, description="Tier5: tasks whose answers are verified."
    )
    groups: dict[Label, Group] = Field({}, description="Means over slices, tasks or groups.")

    @model_validator(mode="after")
    def _extends(self) -> "Suite":
        if self.overrides and self.extends is None:
            raise ValueError("`overrides` change what `extends` names, which is not given")
        return self

    def tier_groups(self, tier: str) -> dict[str, Group]:
        return {name: group for name, group in self.groups.items() if group.tier == tier}

    @property
    def runs_programs(self) -> bool:
        checks = (check for probe in self.probes.values() for check in probe.checks)
        return any(check.check == "passes_tests" for check in checks) or any(
            task.runs_programs for task in self.generation_tasks.values()
        )


def load_suite(
    folder: Path, name: str, _below: tuple[str, ...] = (), *, asked: str = "suites"
) -> Suite:
    """Read `folder/name.yaml`, or the suite of this name that comes with the workflow.

    Items keep their order, those of what it extends first. `_below` are the suites that extend it, the
    outermost first; `asked` is the key that names it, for messages.
    """
    path = _suite_file(folder, name, asked)
    if name in _below:
        circle = " > ".join((*_below, name))
        raise ConfigError(f"{path}: suites extend each other in a circle: {circle}; take one out")
    try:
        suite = Suite.model_validate(read_yaml(path))
    except ValidationError as error:
        raise config_error(error, str(path), Suite) from None
    if suite.extends is None:
        return suite
    base = load_suite(folder, suite.extends, (*_below, name), asked=f"{path}: extends")
    return merge_suites([(suite.extends, _overridden(base, suite, path)), (name, suite)], folder)


def _suite_file(folder: Path, name: str, asked: str) -> Path:
    path = folder / f"{name}.yaml"
    shipped = SUITES / path.name
    if path.is_file() or (shipped.is_file() and not os.path.lexists(path)):
        return path if path.is_file() else shipped
    if withdrawn := instead("value", name):
        raise ConfigError(f"{asked}: {name} {withdrawn}")
    known = sorted({file.stem for home in (folder, SUITES) for file in home.glob("*.yaml")})
    raise ConfigError(
        f"{asked}: no such file as {path}{did_you_mean(name, known)}; correct `suites`"
    )


def _overridden(base: Suite, suite: Suite, path: Path) -> Suite:
    changed: dict[str, Any] = {}
    for section, overrides in suite.overrides.items():
        items = changed[section] = dict(getattr(base, section))
        for name, keys in overrides.items():
            key = f"{path}: overrides.{section}.{name}"
            if name not in items:
                raise ConfigError(f"{key}: {no_such('item', name, items)}")
            given = {**items[name].model_dump(mode="json", exclude_unset=True), **keys}
            try:
                items[name] = type(items[name]).model_validate(given)
            except ValidationError as error:
                raise config_error(error, key, type(items[name])) from None
    return base.model_copy(update=changed)


_CHAT = ("chat_template", "chat_template_kwargs", "answer_after")
CARRIED = frozenset((*_CHAT, "attention", "system", "stop"))


def merge_suites(named: list[tuple[str, Suite]], folder: Path) -> Suite:
    """Merge suites, in the order of the configuration; the last one's other settings hold."""
    sections = [*(tier.section for tier in TIERS.values()), "groups"]
    merged: dict[str, Any] = {section: {} for section in sections}
    for name, suite in named:
        for kind in sections:
            for key, item in getattr(suite, kind).items():
                if merged[kind].setdefault(key, item) != item:
                    raise ConfigError(
                        f"{folder / name}.yaml: {kind}.{key}: another suite, or one it extends, "
                        "defines this name differently; rename one of them"
                    )
        merged.update(suite.model_dump(include=set(CARRIED), exclude_unset=True))
    return Suite(**merged)


def settled_suite(suite: Suite) -> Suite:
    """Return a suite whose items carry its settings, so that no other suite's can reach them."""
    chat = {key: value for key in _CHAT if (value := getattr(suite, key))}
    asked = chat | ({"system": suite.system} if suite.system else {})
    slices = {n: _inherited(one, {"attention": suite.attention}) for n, one in suite.slices.items()}
    tasks = {
        name: _inherited(task, asked) if task.chat else task
        for name, task in suite.generation_tasks.items()
    }
    probes = {n: _inherited(one, chat | {"stop": suite.stop}) for n, one in suite.probes.items()}
    for name, probe in probes.items():
        if suite.system and probe.messages[0].role != "system":
            turns = (Message(role="system", content=suite.system), *probe.messages)
            probes[name] = probe.model_copy(update={"messages": turns})
    return suite.model_copy(update={"slices": slices, "probes": probes, "generation_tasks": tasks})


def _inherited(item: Any, given: Mapping[str, Any]) -> Any:
    """Return an item with its suite's settings where it has none; `chat_template_kwargs` are merged."""
    changed = {
        k: v for k, v in given.items() if getattr(item, k) is None or k not in item.model_fields_set
    }
    if kwargs := given.get("chat_template_kwargs"):
        changed["chat_template_kwargs"] = {**kwargs, **item.chat_template_kwargs}
    return item.model_copy(update=changed) if changed else item
