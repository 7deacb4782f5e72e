"""What the outputs of each step depend on, besides its parents' outputs, caches and the checkpoint.

Settings that only change the view of stored scores (groups, primary metrics, checks, margins) are in
the keys of `collect` or later steps, never in that of `score`.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.subjects import (
    previous_folders,
    steps_so_far,
)
from evaluation.dependencies.other_runs import references, run_state
from evaluation.dependencies.places import Place
from evaluation.files import unordered
from evaluation.records import Record, read_record
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


def deltas_parts(place: Place, records: Records) -> dict[str, Any]:
    """Return what the deltas of a step depend on."""
    del records
    plan = place.plan
    return {
        "protocol": protocol.BRIDGE,
        "stage": plan.name,
        "step": place.step,
        "objective": [objective.model_dump() for objective in plan.stage.objective],
    }


def tables_parts(place: Place, records: Records) -> dict[str, Any]:
    """Return what a stage's tables depend on."""
    del records
    plan = place.plan
    steps = steps_so_far(plan)
    deleted = [step for step in steps if configuration_file(plan.checkpoint(step)) is None]
    return {
        "protocol": [protocol.BRIDGE, protocol.REPORT],
        "run": Path(plan.config.results).name,  # its name on the page
        "stage": plan.name,
        "steps": list(steps),
        **({"names": plan.stage.names} if plan.stage.names else {}),
        "has_bridge": plan.stage.bridge is not None,
        "open_ended": plan.stage.open_ended and plan.stage.bridge is not None,
        "objective": [objective.model_dump() for objective in plan.stage.objective],
        "suite": plan.suite.model_dump(mode="json"),
        "gone": deleted,
        **({"is_bridge_gone": True} if _is_bridge_gone(plan) else {}),
        **({"bridge_noise": noise} if (noise := _before_bridge(plan)) else {}),
        **_levels(plan),
    }


def _is_bridge_gone(plan: StagePlan) -> bool:
    """Return whether the bridge's checkpoint was deleted since it was scored."""
    score = read_record(plan.bridge_folder, "score") if plan.stage.bridge else None
    path = score.about.get("checkpoint") if score else None
    return isinstance(path, str) and not configuration_file(Path(path))


def _before_bridge(plan: StagePlan) -> list[str]:
    """Return what identifies the results of the bridge's own stage that there are, for the bridge's noise."""
    records = [read_record(folder, "collect") for folder in previous_folders(plan)]
    return [record.identity for record in records if record and record.error is None]


def _levels(plan: StagePlan) -> dict[str, Any]:
    """Return the state of the runs that are reference levels for curves, if there are any."""
    found = references(plan.config)
    published = {name: reference.model_dump() for name, reference in plan.config.references.items()}
    return {
        **({"levels": [[name, run_state(path)] for name, path in found.items()]} if found else {}),
        **({"published": published} if published else {}),
    }


def view_parts(place: Place, records: Records) -> dict[str, Any]:
    """Return what figures and pages depend on: nothing but the tables that they show, and which these are."""
    del records
    return {"protocol": protocol.REPORT, "stages": [plan.name for plan in place.plans]}


def comparison_parts(place: Place, records: Records) -> dict[str, Any]:
    """Return what the page of other runs depends on; the state of their files is read."""
    runs = place.plan.config.runs
    return {
        **view_parts(place, records),
        "bridge": protocol.BRIDGE,
        "runs": [[name, run.model_dump(), run_state(Path(run.path))] for name, run in runs.items()],
    }


def _items(plan: StagePlan, tier: str) -> Mapping[str, Any]:
    items: Mapping[str, Any] = getattr(plan.suite, TIERS[tier].section)
    return items
