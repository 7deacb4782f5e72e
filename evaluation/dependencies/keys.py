"""What the outputs of each step depend on, besides its parents' outputs, caches and the checkpoint.

Settings that only change the view of stored scores (groups, primary metrics, checks, margins) are in
the key of `collect`, or in none; never in that of `score`.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.dependencies.places import Place
from evaluation.files import unordered
from evaluation.records import Record
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

Records = Sequence[Record | None]
"""Records of what a step reads, as `steps.sources` lists it."""


def command_state(plan: StagePlan) -> list[Any]:
    """Return a stage's command, and size and time of the files that it names: a script may be edited."""
    command = plan.stage.command
    try:
        words = shlex.split(command or "")
    except ValueError:  # the shell will report it
        words = (command or "").split()
    paths = [Path(word) for word in words if os.path.isfile(word)]
    files = [[str(p), p.stat().st_size, p.stat().st_mtime_ns] for p in paths]
    return [command, files]


def score_parts(place: Place, records: Records) -> dict[str, Any]:
    """Return everything except caches and checkpoint, which the record lists separately."""
    del records
    plan = place.plan
    return {
        "form": protocol.SCORES,
        "protocols": {name: TIERS[name].scoring for name in plan.tiers},
        "attention": _attention(plan),
        "tokenizer": plan.tokenizer.model_dump(),
        "sequence_length": plan.sequence_length,
        "device": plan.config.scoring.device,
        "dtype": plan.config.scoring.dtype,
        "command": command_state(plan),
        "allow_shorter_sequences": plan.stage.allow_shorter_sequences,
        "assume": plan.stage.assume and plan.stage.assume.model_dump(),
        "checkpoint": str(place.subject.checkpoint),
        "items": {TIERS[name].section: sorted(_items(plan, name)) for name in plan.tiers},
        **_decoding(plan),
    }


def _attention(plan: StagePlan) -> str | dict[str, str]:
    """Return what tokens attend to in all slices, or in each where they differ."""
    by_slice = {name: item.attention or "block" for name, item in plan.suite.slices.items()}
    kinds = set(by_slice.values()) or {"block"}
    return kinds.pop() if len(kinds) == 1 else dict(sorted(by_slice.items()))


def _decoding(plan: StagePlan) -> dict[str, Any]:
    tasks, engine = plan.suite.generation_tasks, plan.config.generation.decoding
    found = {name: {**task.decoding, **engine} for name, task in tasks.items()}
    return {"decoding": unordered(found)} if found else {}


def collect_parts(place: Place, records: Records) -> dict[str, Any]:
    """Return what a checkpoint's results depend on."""
    plan, subject, (score,) = place.plan, place.subject, records
    groups = {name: group.definition for name, group in plan.suite.groups.items()}
    return {
        "protocol": protocol.RESULTS,
        "protocols": {name: TIERS[name].protocol for name in plan.tiers},
        "stage": plan.name,
        "step": subject.step,
        "role": subject.role,
        "items": {
            name: {key: item.model_dump(mode="json") for key, item in _items(plan, name).items()}
            for name in plan.tiers
        },
        # A file of the store may hold scores of other prompts, too, so the key names the prompts.
        "scored": score and score.about.get("tiers"),
        **({"groups": groups} if groups else {}),
        **_verification(plan),
    }


def _verification(plan: StagePlan) -> dict[str, Any]:
    """Return the settings that verdicts depend on besides the items; none for external programs."""
    if plan.stage.command:
        return {}
    if plan.suite.probes or plan.suite.generation_tasks:
        return {"verification": plan.config.verification.deciding}
    return {}


def _items(plan: StagePlan, tier: str) -> Mapping[str, Any]:
    items: Mapping[str, Any] = getattr(plan.suite, TIERS[tier].section)
    return items
