"""Identity of a cache entry: what must be the same for its files to be used again.

An entry is current if its meta.json holds the definition that the configuration gives now. Nothing
here imports torch or transformers; `about` is what a tokenizer's meta.json says of it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation import protocol
from evaluation.files import fingerprint
from evaluation.settings.plan import StagePlan


def tokenizer_definition(plan: StagePlan) -> str:
    """Identity of the saved tokenizer."""
    wanted = plan.tokenizer.model_dump(exclude={"also_known_as"})
    return fingerprint([protocol.PREFILL_TOKENIZER, wanted])


def slice_definition(plan: StagePlan, name: str, about: Mapping[str, Any]) -> str:
    """Identity of a slice's tokens, given unchanged data."""
    item = plan.suite.slices[name]
    return fingerprint(
        {
            "protocol": protocol.PREFILL_SLICE,
            "slice": item.definition(),
            "tokenizer": [about["fingerprint"], about["prepend_bos"]],
            "sequence_length": plan.sequence_length,
        }
    )


def task_definition(plan: StagePlan, name: str, about: Mapping[str, Any]) -> str:
    """Identity of a task's examples, given unchanged data."""
    return _task_definition(plan, plan.suite.tasks[name].definition(), about)


def asked_task_definition(plan: StagePlan, name: str, about: Mapping[str, Any]) -> str:
    """Identity of what a model is asked in a task, whatever is made of its answers."""
    return _task_definition(plan, plan.suite.tasks[name].asked(), about)


def _task_definition(plan: StagePlan, task: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    return fingerprint(
        {
            "protocol": protocol.PREFILL_TASK,
            "task": task,
            "tokenizer": [about["fingerprint"], about["prepend_bos"]],
            "sequence_length": plan.sequence_length,
        }
    )


def probes_definition(plan: StagePlan, template: str, about: Mapping[str, Any]) -> str:
    """Identity of a stage's prompts, rendered by this chat template.

    What becomes of the answers (checks, categories) is no part of it.
    """
    probes = plan.suite.probes
    return fingerprint(
        {
            "protocol": protocol.PREFILL_PROBES,
            "probes": {name: probe.definition() for name, probe in probes.items()},
            "chat_template": template,
            "stop": list(plan.suite.stop),
            "tokenizer": about,
            "sequence_length": plan.sequence_length,
        }
    )


def generation_definition(
    plan: StagePlan, name: str, template: str | None, about: Mapping[str, Any]
) -> str:
    """Identity of a generation task's prompts and documents, given unchanged data."""
    task = plan.suite.generation_tasks[name]
    documents = task.model_dump(mode="json", include={"document", "strata"})
    return fingerprint([asked_definition(plan, name, template, about), documents])


def asked_definition(
    plan: StagePlan, name: str, template: str | None, about: Mapping[str, Any]
) -> str:
    """Identity of a generation task's prompts alone, which completions are made from."""
    task = plan.suite.generation_tasks[name]
    return fingerprint(
        {
            "protocol": protocol.PREFILL_GENERATION,
            "task": task.asked(),
            "chat_template": template if task.chat else None,
            "tokenizer": [about["fingerprint"], about["prepend_bos"]],
            "sequence_length": plan.sequence_length,
        }
    )


def tokenizer_files(folder: Path) -> list[Path] | None:
    """The files of a local tokenizer; None for one of the hub."""
    if not folder.is_dir():
        return None
    patterns = ("*token*", "*.model", "vocab*", "merges*", "chat_template*")
    return sorted({path for p in patterns for path in folder.glob(p) if path.is_file()})


_DESCRIPTION = (
    *("name", "fingerprint", "class", "prepend_bos"),
    *("vocab_size", "bos_token_id", "eos_token_id"),
)


def saved_description(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a tokenizer's meta.json that `describe` gave."""
    return {key: meta[key] for key in _DESCRIPTION}
