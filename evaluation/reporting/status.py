"""The state of a stage, from its results and logs: what is done, running, failed or missing."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.subjects import step_subject
from evaluation.dependencies.caches import stage_entries
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.places import Place, bridge_places, place_of
from evaluation.dependencies.steps import SCORE, STEPS
from evaluation.errors import ResultsError, first_few
from evaluation.records import read_record
from evaluation.reporting.terminal import as_table
from evaluation.results.deltas_file import DELTAS, StageDeltas, StepDeltas
from evaluation.results.job_logs import is_running, last_error, latest_log
from evaluation.results.stage_files import (
    QUALITY,
    RECOMMENDATION,
    Recommendation,
    TaskQuality,
    stage_outputs,
)
from evaluation.results.tier_files import read_tier_file
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import absent_checkpoints
from evaluation.settings.tiers import TIERS

Readers = Mapping[str, Callable[[Path], object]]
"""Functions that read a file, by its name in a status."""

_READERS: Readers = {
    **{tier: partial(lambda tier, path: read_tier_file(path.parent, tier), tier) for tier in TIERS},
    "deltas": StepDeltas.read,
}
"""Readers of a checkpoint's files."""

STAGE_READERS: Readers = {
    DELTAS: StageDeltas.read,
    RECOMMENDATION: Recommendation.read,
    QUALITY: TaskQuality.read,
}


def stage_status(
    plan: StagePlan, steps: Sequence[int], outdated: Outdated | None = None
) -> dict[str, Any]:
    """Return the state of each step of a stage, and of the stage's files, as `status --json` has it.

    A state is `done`, `outdated`, `running`, `failed`, `missing` or `damaged`; `damaged` of a
    subject or of the stage has a sentence for each such file. `check` is the error of the check
    before the jobs, if it stopped them; `checkpoints` has a sentence where their folder does not
    exist. `complete` is True if every state is `done`.

    Args:
        steps: The steps to report, besides the bridge.
        outdated: Compares results with the configuration; None to leave that out.
    """
    places = {str(step): place_of(step_subject(plan, step)) for step in steps}
    every = outdated.plans if outdated else {plan.name: plan}
    places |= {place.label: place for place in bridge_places(plan, every)}
    subjects = {name: _subject(place) for name, place in places.items()}
    files, damaged = _stage_files(plan)
    if outdated is not None:
        _mark_outdated(places, subjects, outdated)
    states = [state for subject in subjects.values() for state in subject["files"].values()]
    complete = all(state == "done" for state in (*states, *files.values()))
    return {
        "stage": plan.name,
        "complete": complete,
        "check": None if complete else last_error(plan.check_log),
        "checkpoints": None if complete else absent_checkpoints(plan.name, plan.stage),
        **_verdict(plan),
        "prefill": dict(_prefilling(plan)),
        "subjects": subjects,
        "files": files,
        "damaged": damaged,
    }


def _prefilling(plan: StagePlan) -> Iterator[tuple[str, str]]:
    """Yield the caches that are being prefilled, and the log of each."""
    for entry in stage_entries(plan):
        name = "_".join([entry.kind, entry.name] if entry.tier else [entry.kind])
        log = plan.cache / "logs" / f"{name}.log"
        if is_running(log) and latest_log(entry.record, log) == log:
            yield f"{entry.kind} {entry.name}", str(log)


def _mark_outdated(
    places: Mapping[str, Place], subjects: Mapping[str, dict[str, Any]], outdated: Outdated
) -> None:
    """Mark results and errors that come from other inputs as outdated; those without a record stay."""
    made = Outdated(outdated.plans, as_made=True)
    for name, place in places.items():
        subject, own = subjects[name], subjects[name]["files"]
        for step in STEPS.values():
            if read_record(place.folder, step.name) and outdated(step.name, place):
                _replace(own, step.outputs(place), "done")
        if subject["error"] and _is_error_outdated(place, subject["error"], made):
            _replace(own, own, "failed")
            subject["error"] = subject["log"] = None
        if read_record(place.folder, SCORE):
            subject["partly_deleted"] = outdated.is_partly_deleted(place.subject)


def _replace(states: dict[str, str], names: Iterable[str], state: str) -> None:
    """Call files outdated that are in a state."""
    states |= {name: "outdated" for name in names if states[name] == state}


def _is_error_outdated(place: Place, error: str, outdated: Outdated) -> bool:
    """Return whether a recorded error is of other settings, data or files than there are now."""
    for step in STEPS.values():
        record = read_record(place.folder, step.name)
        if record is not None and record.error == error:
            return outdated(step.name, place)
    return False


def _verdict(plan: StagePlan) -> dict[str, Any]:
    """Return the stage's verdict so far, if any, and whether it is provisional."""
    try:
        advice = Recommendation.read(plan.results / RECOMMENDATION)
    except ResultsError:  # not written yet, or listed as damaged
        return {"verdict": None, "provisional": None}
    return {"verdict": advice.verdict, "provisional": advice.provisional}


def _stage_files(plan: StagePlan) -> tuple[dict[str, str], list[str]]:
    """Return the states of the stage's files, and a sentence for each that cannot be used."""
    return _states({name: plan.results / name for name in stage_outputs(plan)}, STAGE_READERS)


def _states(paths: Mapping[str, Path], readers: Readers) -> tuple[dict[str, str], list[str]]:
    """Return `done`, `missing` or `damaged` by name; without a reader only an empty file is damaged."""
    states, damaged = {}, []
    for name, path in paths.items():
        states[name] = "done" if path.exists() else "missing"
        if name in readers and path.exists():
            try:
                readers[name](path)
            except ResultsError as error:
                states[name] = "damaged"
                damaged.append(str(error))
        elif path.is_file() and not path.stat().st_size:
            states[name] = "damaged"
            damaged.append(f"{path}: empty; remove it and run again")
    return states, damaged


def failures(plan: StagePlan, steps: Sequence[int]) -> list[str]:
    """Return a sentence on the last error of each failed job with its log, the check before jobs first."""
    status = stage_status(plan, steps)
    labels = {str(step): plan.label(step) for step in steps}
    lines = [f"check: {status['check']} ({plan.check_log})"] if status["check"] else []
    return lines + [
        f"{labels.get(name, name)}: {subject['error']} ({subject['log']})"
        for name, subject in status["subjects"].items()
        if subject["error"]
    ]


def _subject(place: Place) -> dict[str, Any]:
    plan, steps = place.plan, STEPS.values()
    paths = {name: files[0] for step in steps for name, files in step.outputs(place).items()}
    names = list(paths)
    if plan.stage.bridge is not None and not place.is_bridge:
        paths["deltas"] = place.folder / DELTAS
    files, damaged = _states(paths, _READERS)
    log = plan.bridge_log if place.step is None else plan.step_log(place.step)
    log = latest_log(log, plan.collect_log(place.folder))
    error = last_error(log) if "missing" in files.values() else None
    running = is_running(log, place.folder)
    if error or running:
        files |= {
            name: "failed" if error else "running"
            for name, state in files.items()
            if state == "missing" and name in names
        }
    return {
        "files": files,
        "error": error,
        "log": str(log) if error or running else None,
        "damaged": damaged,
        "deleted": place.step is not None and not configuration_file(place.subject.checkpoint),
        "partly_deleted": False,
    }


def _gone(subject: Mapping[str, Any]) -> str:
    """Return whether the checkpoint of something scored is deleted, in brackets after its name."""
    if "done" not in subject["files"].values():
        return ""
    if subject.get("deleted"):
        return " (deleted)"
    return " (partly deleted)" if subject.get("partly_deleted") else ""


def status_table(statuses: Mapping[str, Mapping[str, Any]]) -> str:
    """Return all stages in one table, then logs of running jobs and errors of failed ones."""
    files = (s["files"] for entry in statuses.values() for s in entry["subjects"].values())
    columns = dict.fromkeys(chain(TIERS, *files))
    rows = [["stage", "step", *columns]]
    running, errors = [], []
    for stage, entry in statuses.items():
        running += [
            f"{stage} prefill, {name}: runs ({log})" for name, log in entry["prefill"].items()
        ]
        for name, subject in entry["subjects"].items():
            label = f"{name}{_gone(subject)}"
            rows.append([stage, label, *(subject["files"].get(column, "–") for column in columns)])
            if subject["log"] and not subject["error"]:
                running.append(f"{stage} {name}: runs ({subject['log']})")
            if subject["error"]:
                errors.append(f"{stage} {name}: {subject['error']} ({subject['log']})")
            errors += [f"{stage} {name}: {line}" for line in subject["damaged"]]
        errors += [f"{stage}: {line}" for line in entry["damaged"]]
    lines = [as_table(rows), ""]
    for stage, entry in statuses.items():
        missing = [n for n, state in entry["files"].items() if state in ("missing", "outdated")]
        verdict = f"; {entry['verdict']}" if entry["verdict"] else ""
        verdict += ", provisional" if verdict and entry["provisional"] else ""
        lines.append(f"{stage}: {'complete' if entry['complete'] else 'incomplete'}{verdict}")
        lines += [f"  to come: {first_few(missing, 4)}"] if missing else []
        lines += [f"  check: {entry['check']}"] if entry["check"] else []
        lines += [f"  {entry['checkpoints']}"] if entry["checkpoints"] else []
    return "\n".join([*lines, *running, *errors])
