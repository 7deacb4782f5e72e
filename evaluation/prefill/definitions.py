"""Definitions (identities) of cache entries: what must be the same to use an entry's files again.

An entry is current if its meta.json holds the definition that the configuration gives now. Nothing
here imports torch or transformers; `tokenizer` is the meta.json of a saved tokenizer.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import fingerprint
from evaluation.prefill.files import stamps_of
from evaluation.settings import protocol
from evaluation.settings.chat import ChatSettings
from evaluation.settings.plan import StagePlan
from evaluation.tokenizers.files import tokenizer_files

Define = Callable[[StagePlan, str, Mapping[str, Any]], str]
"""Returns the definition of a stage's entry from the entry's name and the saved tokenizer's meta.json,
assuming unchanged data; raises SourceError or KeyError if there is none."""

_DESCRIPTION = (
    *("name", "fingerprint", "class", "prepend_bos"),
    *("vocab_size", "bos_token_id", "eos_token_id"),
)


def saved_description(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a tokenizer's meta.json that describes the tokenizer."""
    return {key: meta[key] for key in _DESCRIPTION}


def tokenizer_state(plan: StagePlan) -> list[list[Any]] | None:
    """Return what tells whether a stage's tokenizer is still the same; None for one on the hub."""
    folder = Path(plan.tokenizer.name)
    if not folder.is_dir():
        return None
    return stamps_of(path for path in tokenizer_files(folder) if path.is_file())


def chat_template(plan: StagePlan, item: ChatSettings, tokenizer: Mapping[str, Any]) -> str:
    """Return the Jinja2 template of an item's conversations: its own (or its suite's), or the tokenizer's."""
    template = item.chat_template or tokenizer.get("chat_template")
    if template is None:
        raise SourceError(
            f"tokenizer {plan.tokenizer.name} has no chat template, and none is given for "
            f"{plan.name}: set `chat_template:` in the suite that has conversations"
        )
    return str(template)


def tokenizer_definition(plan: StagePlan) -> str:
    """Return the identity of the saved tokenizer."""
    return fingerprint([protocol.PREFILL_TOKENIZER, plan.tokenizer.identity])


def _encoded(content: dict[str, Any], plan: StagePlan, tokenizer: Mapping[str, Any]) -> str:
    """Return the fingerprint of what is encoded, with how; a default window outdates no entry."""
    used = [tokenizer["fingerprint"], tokenizer["prepend_bos"]]
    return fingerprint(content | {"tokenizer": used, "sequence_length": plan.sequence_length})


def _window(plan: StagePlan) -> dict[str, int]:
    window = plan.config.generation.window
    return {} if window is None else {"window": window}


def slice_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the definition of a slice's tokens."""
    definition = plan.suite.slices[name].definition
    return _encoded({"protocol": protocol.PREFILL_SLICE, "slice": definition}, plan, tokenizer)


def task_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the definition of a task's questions and gold answers."""
    content = {"protocol": protocol.PREFILL_TASK, "task": plan.suite.tasks[name].definition}
    return _encoded(content, plan, tokenizer)


def asked_task_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the definition of a task's questions alone: the part that scores depend on."""
    content = {"protocol": protocol.PREFILL_TASK, "task": plan.suite.tasks[name].asked}
    return _encoded(content, plan, tokenizer)


def probes_definition(plan: StagePlan, _: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the identity of a stage's prompts, without checks and categories."""
    probes = {
        name: [probe.definition, chat_template(plan, probe, tokenizer), list(probe.stop or ())]
        for name, probe in plan.suite.probes.items()
    }
    content = {"protocol": protocol.PREFILL_PROBES, "probes": probes, **_window(plan)}
    return _encoded(content, plan, tokenizer)


def generation_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the identity of a generation task's prompts and documents, given unchanged data."""
    task = plan.suite.generation_tasks[name]
    documents = task.model_dump(mode="json", include={"document", "strata"})
    return fingerprint([asked_definition(plan, name, tokenizer), documents])


def asked_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the part of a generation task's definition that scores depend on: its prompts alone."""
    task = plan.suite.generation_tasks[name]
    template = chat_template(plan, task, tokenizer) if task.chat else None
    content = {"protocol": protocol.PREFILL_GENERATION, "task": task.asked, **_window(plan)}
    return _encoded(content | {"chat_template": template}, plan, tokenizer)
