"""What scores and results depend on: a key changes if and only if one of these does.

Settings that change only the view of results (objectives, margins, names) are in no key: the report is
made at every call. Those that grade stored scores again (groups, checks, primary metrics) are in the key
of `collect` alone.
"""

from collections.abc import Mapping
from typing import Any

from evaluation.checkpoints.state import State
from evaluation.checkpoints.subjects import Subject
from evaluation.files import fingerprint, unordered
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

Described = Mapping[str, list[str]]
"""Definition and content of caches, by their folders."""


def prefill_key(plans: list[StagePlan]) -> str:
    """Return the key of all that is prefilled for stages with one tokenizer and sequence length."""
    versions = {name: getattr(protocol, name) for name in vars(protocol) if name.isupper()}
    content = {plan.name: _prefilled(plan) for plan in plans}
    return fingerprint({"versions": versions, "stages": content})


def _prefilled(plan: StagePlan) -> dict[str, Any]:
    return {
        "tokenizer": plan.tokenizer.model_dump(mode="json"),
        "sequence_length": plan.sequence_length,
        "window": plan.config.generation.window,
        "mirrors": plan.config.mirrors,
        "suite": plan.suite.model_dump(mode="json"),
    }


def score_key(
    plan: StagePlan, subject: Subject, state: State, place: str, caches: Described
) -> str:
    """Return the key of a checkpoint's scores.

    Args:
        state: The state of its files, or the recorded one where some were deleted since.
        place: Where its path leads.
        caches: What the caches hold.
    """
    return fingerprint(
        {
            "form": protocol.SCORES,
            "protocols": {name: TIERS[name].scoring for name in plan.tiers},
            "attention": {
                name: item.attention or "block" for name, item in plan.suite.slices.items()
            },
            "tokenizer": plan.tokenizer.model_dump(mode="json"),
            "sequence_length": plan.sequence_length,
            "device": plan.config.scoring.device,
            "dtype": plan.config.scoring.dtype,
            "command": plan.command_state,
            "allow_shorter_sequences": plan.stage.allow_shorter_sequences,
            "assume": plan.stage.assume and plan.stage.assume.model_dump(mode="json"),
            "checkpoint": [str(subject.checkpoint), place, list(state)],
            "items": {TIERS[name].section: sorted(_items(plan, name)) for name in plan.tiers},
            "decoding": _decoding(plan),
            "caches": unordered(caches),
        }
    )


def _decoding(plan: StagePlan) -> Any:
    engine = plan.config.generation.decoding
    tasks = plan.suite.generation_tasks
    return unordered({name: {**task.decoding, **engine} for name, task in tasks.items()})


def collect_key(subject: Subject, score: str, metadata: str | None, documents: Described) -> str:
    """Return the key of a checkpoint's results.

    Args:
        score: Name of the record of its scores.
        metadata: Checksum of the checkpoint's metadata.
        documents: What is graded with.
    """
    plan = subject.plan
    groups = {name: group.model_dump() for name, group in plan.suite.groups.items()}
    return fingerprint(
        {
            "protocol": protocol.RESULTS,
            "protocols": {name: TIERS[name].protocol for name in plan.tiers},
            "score": score,
            "stage": plan.name,
            "step": subject.step,
            "role": subject.role,
            "items": {
                name: {
                    key: item.model_dump(mode="json") for key, item in _items(plan, name).items()
                }
                for name in plan.tiers
            },
            "groups": groups,
            "verification": None
            if plan.stage.command
            else plan.config.verification.model_dump(exclude={"workers"}),
            "metadata": metadata,
            "documents": unordered(documents),
        }
    )


def _items(plan: StagePlan, tier: str) -> Mapping[str, Any]:
    items: Mapping[str, Any] = getattr(plan.suite, TIERS[tier].section)
    return items
