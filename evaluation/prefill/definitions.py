"""Identity of a cache entry: what must be the same for its files to be used again.

An entry is current if its meta.json holds the definition that the configuration gives now. Nothing
here imports torch or transformers; `about` is what a tokenizer's meta.json says of it.
"""

from collections.abc import Mapping
from typing import Any

from evaluation import protocol
from evaluation.files import fingerprint
from evaluation.settings.plan import StagePlan


def tokenizer_definition(plan: StagePlan) -> str:
    """Identity of the saved tokenizer."""
    wanted = plan.tokenizer.model_dump(exclude={"also_known_as"})
    return fingerprint([protocol.PREFILL_TASK, wanted])


def slice_definition(plan: StagePlan, name: str, about: Mapping[str, Any]) -> str:
    """Identity of a slice's tokens, given unchanged data."""
    item = plan.suite.slices[name]
    return fingerprint(
        {
            "protocol": protocol.PREFILL_SLICE,
            "slice": item.model_dump(mode="json", exclude={"group", "streaming"}),
            "tokenizer": [about["fingerprint"], about["prepend_bos"]],
            "sequence_length": plan.sequence_length,
        }
    )


def task_definition(plan: StagePlan, name: str, about: Mapping[str, Any]) -> str:
    """Identity of a task's examples, given unchanged data."""
    task = plan.suite.tasks[name]
    return fingerprint(
        {
            "protocol": protocol.PREFILL_TASK,
            "task": task.model_dump(mode="json", exclude={"group", "primary", "streaming"}),
            "tokenizer": [about["fingerprint"], about["prepend_bos"]],
            "sequence_length": plan.sequence_length,
        }
    )


def probes_definition(plan: StagePlan, template: str, about: Mapping[str, Any]) -> str:
    """Identity of a stage's prompts, rendered by this chat template."""
    probes = plan.suite.probes
    return fingerprint(
        {
            "protocol": protocol.PREFILL_PROBES,
            "probes": {name: probe.model_dump(mode="json") for name, probe in probes.items()},
            "order": list(probes),
            "chat_template": template,
            "stop": list(plan.suite.stop),
            "tokenizer": about,
            "sequence_length": plan.sequence_length,
        }
    )
