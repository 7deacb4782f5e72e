"""Identity of a cache entry: what must be the same for its files to be used again.

An entry is current if its meta.json holds the definition that the configuration gives now. Nothing
here imports torch or transformers; `tokenizer` is the meta.json of a saved one, or what `describe`
gives with its chat template.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation import protocol
from evaluation.errors import SourceError
from evaluation.files import fingerprint
from evaluation.settings.plan import StagePlan

_DESCRIPTION = (
    *("name", "fingerprint", "class", "prepend_bos"),
    *("vocab_size", "bos_token_id", "eos_token_id"),
)


def saved_description(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a tokenizer's meta.json that `describe` gave."""
    return {key: meta[key] for key in _DESCRIPTION}


def tokenizer_files(folder: Path) -> list[Path] | None:
    """Return the files of a local tokenizer; None for one of the hub."""
    if not folder.is_dir():
        return None
    patterns = ("*token*", "*.model", "vocab*", "merges*", "chat_template*")
    return sorted({path for p in patterns for path in folder.glob(p) if path.is_file()})


def chat_template(plan: StagePlan, tokenizer: Mapping[str, Any]) -> str:
    """Return the Jinja2 template of a stage's conversations; raises SourceError if there is none."""
    template = plan.suite.chat_template or tokenizer.get("chat_template")
    if template is None:
        raise SourceError(
            f"tokenizer {plan.tokenizer.name} has no chat template, and none is given for "
            f"{plan.name}: set `chat_template:` in the suite that asks for conversations"
        )
    return str(template)


def tokenizer_definition(plan: StagePlan) -> str:
    """Return the identity of the saved tokenizer."""
    wanted = plan.tokenizer.model_dump(exclude={"also_known_as"})
    return fingerprint([protocol.PREFILL_TOKENIZER, wanted])


def slice_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the identity of a slice's tokens, given unchanged data."""
    content = {"protocol": protocol.PREFILL_SLICE, "slice": plan.suite.slices[name].definition()}
    return fingerprint(content | _encoding(plan, tokenizer))


def task_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the identity of a task's examples, given unchanged data."""
    content = {"protocol": protocol.PREFILL_TASK, "task": plan.suite.tasks[name].definition()}
    return fingerprint(content | _encoding(plan, tokenizer))


def asked_task_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the identity of a task's questions, whatever is made of the answers."""
    content = {"protocol": protocol.PREFILL_TASK, "task": plan.suite.tasks[name].asked()}
    return fingerprint(content | _encoding(plan, tokenizer))


def probes_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the identity of a stage's prompts; `name` is the stage's.

    What becomes of the answers (checks, categories) is no part of it. Raises SourceError if there is
    no chat template.
    """
    del name
    probes = plan.suite.probes
    return fingerprint(
        {
            "protocol": protocol.PREFILL_PROBES,
            "probes": {name: probe.definition() for name, probe in probes.items()},
            "chat_template": chat_template(plan, tokenizer),
            "stop": list(plan.suite.stop),
            "tokenizer": saved_description(tokenizer),
            "sequence_length": plan.sequence_length,
        }
    )


def generation_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the identity of a generation task's prompts and documents, given unchanged data."""
    task = plan.suite.generation_tasks[name]
    documents = task.model_dump(mode="json", include={"document", "strata"})
    return fingerprint([asked_definition(plan, name, tokenizer), documents])


def asked_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the identity of a generation task's prompts alone, which completions are made from."""
    task = plan.suite.generation_tasks[name]
    content = {
        "protocol": protocol.PREFILL_GENERATION,
        "task": task.asked(),
        "chat_template": chat_template(plan, tokenizer) if task.chat else None,
    }
    return fingerprint(content | _encoding(plan, tokenizer))


def _encoding(plan: StagePlan, tokenizer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "tokenizer": [tokenizer["fingerprint"], tokenizer["prepend_bos"]],
        "sequence_length": plan.sequence_length,
    }
