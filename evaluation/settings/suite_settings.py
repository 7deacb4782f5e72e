"""What a suite sets for its items, carried by each of them: suites of one stage do not mix."""

from collections.abc import Mapping
from typing import Any, TypeVar

from evaluation.settings.model import Settings
from evaluation.settings.suites import CARRIED, Message, Probe, Suite

Item = TypeVar("Item", bound=Settings)

_CHAT = ("chat_template", "chat_template_kwargs", "answer_after")


def settled_suite(suite: Suite) -> Suite:
    """Return a suite whose items carry its settings, so that no other suite's can reach them."""
    given = {key: value for key in CARRIED if (value := getattr(suite, key))}
    chat = {key: given[key] for key in _CHAT if key in given}
    slices = {"attention": suite.attention}
    asked = {**chat, **({"system": suite.system} if suite.system else {})}
    return suite.model_copy(
        update={
            "slices": {name: _inherited(item, slices) for name, item in suite.slices.items()},
            "probes": {
                name: _with_system(_inherited(probe, {**chat, "stop": suite.stop}), suite.system)
                for name, probe in suite.probes.items()
            },
            "generation_tasks": {
                name: _inherited(task, asked) if task.chat else task
                for name, task in suite.generation_tasks.items()
            },
        }
    )


def _with_system(probe: Probe, system: str | None) -> Probe:
    if system is None or probe.messages[0].role == "system":
        return probe
    turns = (Message(role="system", content=system), *probe.messages)
    return probe.model_copy(update={"messages": turns})


def _inherited(item: Item, given: Mapping[str, Any]) -> Item:
    """Return an item with its suite's settings where it has none of its own.

    `chat_template_kwargs` are merged, the item's last.
    """
    changed = {}
    for key, value in given.items():
        if key == "chat_template_kwargs":
            changed[key] = {**value, **getattr(item, key)}
        elif key not in item.model_fields_set or getattr(item, key) is None:
            changed[key] = value
    return item.model_copy(update=changed) if changed else item
