"""The steps between caches and pages, and the key of each: everything that its outputs depend on.

    step      in the folder of    reads                             writes
    score     a checkpoint        caches, the checkpoint            scores in the store
    collect   a checkpoint        its scores, documents             tier files
    deltas    a step or merge     tier files of it and the bridge   bridge_deltas.json
    tables    a stage             all of the above                  summary, deltas, report
    figures   a stage             its tables                        SVG files
    comparison  the results       all stages' tables, other runs    comparison.{csv,json,html}
    front     the results         all of these                      report.html

Settings that only change the view of stored scores (groups, primary metrics, checks, margins) are in
the keys of `collect` or later steps, never in that of `score`.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation import protocol
from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.locations import Merge, absent_folder
from evaluation.checkpoints.subjects import Subject, candidate_subject
from evaluation.dependencies.other_runs import TABLES as TABLES
from evaluation.dependencies.other_runs import references, run_state
from evaluation.fingerprints import fingerprint, unordered
from evaluation.records import Record, read_record
from evaluation.settings.candidates import Candidate
from evaluation.settings.plan import StagePlan
from evaluation.settings.runs import OtherRun
from evaluation.settings.tiers import TIERS

SCORE = "score"
COLLECT = "collect"
STEP_DELTAS = "deltas"
FIGURES = "figures"
COMPARISON = "comparison"
FRONT = "front"


def command_state(plan: StagePlan) -> list[Any]:
    """Return a stage's command, and the state of the files that it names: a script may be edited.

    Returns:
        The command or None, and name, size and time of change (ns) of each file.
    """
    command = plan.stage.command
    try:
        words = shlex.split(command or "")
    except ValueError:  # the shell will report it
        words = (command or "").split()
    paths = [Path(word) for word in words]
    files = [[str(p), p.stat().st_size, p.stat().st_mtime_ns] for p in paths if _is_file(p)]
    return [command, files]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a word that is too long to be a name
        return False


def score_key(subject: Subject) -> str:
    """Return the key of everything except caches and checkpoint, which the record lists separately.

    Args:
        subject: The checkpoint that is scored.
    """
    plan, location = subject.plan, subject.checkpoint
    members = location.members if isinstance(location, Merge) else ()
    return fingerprint(
        {
            "protocols": {name: TIERS[name].protocol for name in plan.tiers},
            "attention": _attention(plan),
            "tokenizer": plan.tokenizer.model_dump(),
            "sequence_length": plan.sequence_length,
            "device": plan.config.scoring.device,
            "dtype": plan.config.scoring.dtype,
            "command": command_state(plan),
            "allow_shorter_sequences": plan.stage.allow_shorter_sequences,
            "assume": plan.stage.assume and plan.stage.assume.model_dump(),
            "checkpoint": str(subject.checkpoint),
            **({"weights": [weight for _, weight in members]} if members else {}),
            "items": {TIERS[name].section: sorted(_items(plan, name)) for name in plan.tiers},
            **_decoding(plan),
        }
    )


def _attention(plan: StagePlan) -> str | dict[str, str]:
    """Return what tokens attend to in all slices, or in each where they differ."""
    by_slice = {name: item.attention or "block" for name, item in plan.suite.slices.items()}
    kinds = set(by_slice.values()) or {"block"}
    return kinds.pop() if len(kinds) == 1 else dict(sorted(by_slice.items()))


def _decoding(plan: StagePlan) -> dict[str, Any]:
    tasks, engine = plan.suite.generation_tasks, plan.config.generation.decoding
    found = {name: {**task.decoding, **engine} for name, task in tasks.items()}
    return {"decoding": unordered(found)} if found else {}


def collect_key(subject: Subject, score: Record) -> str:
    """Return the key of a checkpoint's results."""
    plan = subject.plan
    groups = {name: group.definition for name, group in plan.suite.groups.items()}
    return fingerprint(
        {
            "protocol": protocol.RESULTS,
            "stage": plan.name,
            "step": subject.step,
            **({"merge": subject.merge} if subject.merge else {}),
            "role": subject.role,
            "items": {
                name: {
                    key: item.model_dump(mode="json") for key, item in _items(plan, name).items()
                }
                for name in plan.tiers
            },
            # A file of the store may hold scores of other prompts, too, so the key names the prompts.
            "score": [score.identity, score.about.get("tiers")],
            **({"groups": groups} if groups else {}),
            **_verification(plan),
        }
    )


def _verification(plan: StagePlan) -> dict[str, Any]:
    """Return the settings that verdicts depend on besides the items; none for external programs."""
    if plan.stage.command:
        return {}
    if plan.suite.probes or plan.suite.generation_tasks:
        return {"verification": plan.config.verification.deciding}
    return {}


def deltas_key(plan: StagePlan, step: Candidate, ours: Record, bridge: Record) -> str:
    """Return the key of the deltas of a step or merge.

    Args:
        step: The step's number, or the merge's name.
    """
    return fingerprint(
        {
            "protocol": protocol.BRIDGE,
            "stage": plan.name,
            "step": step,
            "objective": [objective.model_dump() for objective in plan.stage.objective],
            "sides": [ours.identity, bridge.identity],
        }
    )


def tables_key(
    plan: StagePlan, steps: Sequence[Candidate], made_from: Iterable[Record | None]
) -> str:
    """Return the key of a stage's tables.

    Args:
        steps: Numbers of steps and names of merges, in order.
        made_from: Records of results and deltas, as `stage_records` gives them; None where there is none.
    """
    deleted = [one for one in steps if absent_folder(candidate_subject(plan, one).checkpoint)]
    return fingerprint(
        {
            "protocol": [protocol.BRIDGE, protocol.REPORT],
            "run": Path(plan.config.results).name,  # its name on the page
            "stage": plan.name,
            "steps": list(steps),
            "has_bridge": plan.stage.bridge is not None,
            "open_ended": plan.stage.open_ended and plan.stage.bridge is not None,
            "objective": [objective.model_dump() for objective in plan.stage.objective],
            "suite": plan.suite.model_dump(mode="json"),
            "made_from": [record and record.identity for record in made_from],
            "gone": deleted,
            **({"is_bridge_gone": True} if _is_bridge_gone(plan) else {}),
            **_levels(plan),
        }
    )


def _is_bridge_gone(plan: StagePlan) -> bool:
    """Return whether the bridge's checkpoint was deleted since it was scored."""
    score = read_record(plan.bridge_folder, SCORE) if plan.stage.bridge else None
    path = score.about.get("checkpoint") if score else None
    return isinstance(path, str) and not configuration_file(Path(path))


def _levels(plan: StagePlan) -> dict[str, Any]:
    """Return the state of the runs that are reference levels for curves, if there are any."""
    found = references(plan.config)
    published = {name: one.model_dump() for name, one in plan.config.references.items()}
    return {
        **({"levels": [[name, run_state(path)] for name, path in found.items()]} if found else {}),
        **({"published": published} if published else {}),
    }


def stage_results(plan: StagePlan, steps: Sequence[Candidate]) -> list[tuple[Path, str]]:
    """Return the places of the records that a stage's tables are made from.

    Args:
        steps: Numbers of steps and names of merges, in order.

    Returns:
        Folder and step of the workflow: results of each, the bridge's, then deltas of each.
    """
    places = [(plan.step_folder(step), COLLECT) for step in steps]
    if plan.stage.bridge is not None:
        places.append((plan.bridge_folder, COLLECT))
        places += [(plan.step_folder(step), STEP_DELTAS) for step in steps]
    return places


def stage_records(plan: StagePlan, steps: Sequence[Candidate]) -> list[Record | None]:
    """Return the records that a stage's tables are made from.

    Args:
        steps: Numbers of steps and names of merges, in order.

    Returns:
        Records in the order of `stage_results`; None where there is none.
    """
    return [read_record(*place) for place in stage_results(plan, steps)]


def figures_key(tables: Record) -> str:
    """Return the key of a stage's figures."""
    return fingerprint([protocol.REPORT, tables.identity])


def comparison_key(tables: Mapping[str, Record], runs: Mapping[str, OtherRun]) -> str:
    """Return the key of the page of other runs.

    Args:
        tables: Records of the stages' tables, by stage.
        runs: The configuration's other runs by name; the state of their files is read.
    """
    return fingerprint(
        {
            "protocol": [protocol.BRIDGE, protocol.REPORT],
            "stages": [[name, record.identity] for name, record in tables.items()],
            "runs": [
                [name, run.model_dump(), run_state(Path(run.path))] for name, run in runs.items()
            ],
        }
    )


def front_key(tables: Mapping[str, Record], comparison: Record | None) -> str:
    """Return the key of the page of all stages.

    Args:
        tables: Records of the stages' tables, by stage.
        comparison: Record of the page of other runs; None if the configuration names none.
    """
    stages = {name: record.identity for name, record in tables.items()}
    others = [] if comparison is None else [comparison.identity]
    return fingerprint([protocol.REPORT, stages, *others])


def _items(plan: StagePlan, tier: str) -> Mapping[str, Any]:
    items: Mapping[str, Any] = getattr(plan.suite, TIERS[tier].section)
    return items
