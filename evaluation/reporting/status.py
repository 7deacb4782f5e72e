"""The state of a stage, from its results and logs: what is done, running, failed or missing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.checkpoints.locations import absent_folder
from evaluation.checkpoints.subjects import Subject, bridge_subject, candidate_subject
from evaluation.dependencies.caches import stage_entries
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.steps import COLLECT, SCORE, STEP_DELTAS, TABLES
from evaluation.errors import ResultsError
from evaluation.records import read_record
from evaluation.reporting.time_left import Scored, time_left
from evaluation.results.deltas_file import DELTAS, StageDeltas, StepDeltas
from evaluation.results.job_logs import is_running, job_progress, last_error, latest_log
from evaluation.results.read import read_tier_file
from evaluation.results.stage_files import (
    QUALITY,
    RECOMMENDATION,
    Recommendation,
    TaskQuality,
    stage_outputs,
)
from evaluation.settings.candidates import Candidate, candidate_label
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import absent_checkpoints
from evaluation.settings.tiers import TIERS
from evaluation.terminal_layout import align
from evaluation.wording import first_few

Readers = Mapping[str, Callable[[Path], object]]
"""Functions that read a file, by its name in a status."""

STAGE_READERS: Readers = {
    DELTAS: StageDeltas.read,
    RECOMMENDATION: Recommendation.read,
    QUALITY: TaskQuality.read,
}


def stage_status(
    plan: StagePlan, steps: Sequence[Candidate], outdated: Outdated | None = None
) -> dict[str, Any]:
    """Return the state of each step and merge of a stage, and of the stage's files.

    A state is `done`, `outdated`, `running`, `failed`, `missing` or `damaged`; `damaged` of a
    subject or of the stage has a sentence for each such file. `check` is the error of the check
    before the jobs, if it stopped them; `checkpoints` has a sentence where their folder does not
    exist.

    Args:
        steps: The steps and merges to report, besides the bridge.
        outdated: Compares results with the configuration; None to leave that out.

    Returns:
        The content of one stage in `status --json`; `complete` is True if every state is `done`.
    """
    has_bridge = plan.stage.bridge is not None
    subjects = {
        str(step): {
            **_subject(plan, plan.step_folder(step), plan.step_log(step), has_bridge),
            "deleted": absent_folder(candidate_subject(plan, step).checkpoint) is not None,
        }
        for step in steps
    }
    if has_bridge:
        subjects["bridge"] = _subject(plan, plan.bridge_folder, plan.bridge_log, False)
    files, damaged = _stage_files(plan)
    if outdated is not None:
        _mark_outdated(plan, {str(step): step for step in steps}, subjects, files, outdated)
    left = time_left(_scored(plan, steps, subjects))
    states = [state for subject in subjects.values() for state in subject["files"].values()]
    complete = all(state == "done" for state in (*states, *files.values()))
    return {
        "stage": plan.name,
        "complete": complete,
        "check": None if complete else last_error(plan.check_log),
        "checkpoints": None if complete else absent_checkpoints(plan.name, plan.stage),
        **_verdict(plan),
        "left": left and left.sentence,
        "prefill": dict(_prefilling(plan)),
        "subjects": subjects,
        "files": files,
        "damaged": damaged,
    }


def _scored(
    plan: StagePlan, steps: Sequence[Candidate], subjects: Mapping[str, Mapping[str, Any]]
) -> Iterator[Scored]:
    folders = {str(step): plan.step_folder(step) for step in steps}
    for name, subject in subjects.items():
        states = {tier: subject["files"][tier] for tier in plan.tiers}
        yield Scored(folder=folders.get(name, plan.bridge_folder), states=states)


def _prefilling(plan: StagePlan) -> Iterator[tuple[str, str]]:
    """Yield the caches that are being prefilled, and the progress of each."""
    for entry in stage_entries(plan):
        name = "_".join([entry.kind, entry.name] if entry.tier else [entry.kind])
        log = plan.cache / "logs" / f"{name}.log"
        if is_running(log) and latest_log(entry.record, log) == log:
            yield f"{entry.kind} {entry.name}", job_progress(log) or "begun"


def _mark_outdated(
    plan: StagePlan,
    candidates: Mapping[str, Candidate],
    subjects: Mapping[str, dict[str, Any]],
    files: dict[str, str],
    outdated: Outdated,
) -> None:
    """Mark results and errors that come from other inputs as outdated; those without a record stay."""
    made = Outdated(outdated.plans, as_made=True)
    is_made = read_record(plan.results, TABLES) is not None
    for name, subject in subjects.items():
        candidate = candidates.get(name)
        one = (
            candidate_subject(plan, candidate)
            if candidate is not None
            else bridge_subject(plan, outdated.plans)
        )
        own, record = subject["files"], read_record(one.folder, COLLECT)
        is_made &= record is not None
        if record and outdated.collect(one):
            own |= {tier: "outdated" for tier in plan.tiers if own[tier] == "done"}
        if subject["error"] and _is_error_outdated(one, subject["error"], made):
            own |= {tier: "outdated" for tier in plan.tiers if own[tier] == "failed"}
            subject["error"] = subject["log"] = None
        is_compared = own.get("deltas") == "done" and read_record(one.folder, STEP_DELTAS)
        if candidate is not None and is_compared and outdated.deltas(plan, candidate):
            own["deltas"] = "outdated"
    if is_made and outdated.tables(plan):
        files |= {name: "outdated" for name, state in files.items() if state == "done"}


def _is_error_outdated(subject: Subject, error: str, made: Outdated) -> bool:
    """Return whether a recorded error is of other settings, data or files than there are now."""
    score, results = (read_record(subject.folder, step) for step in (SCORE, COLLECT))
    if score is not None and score.error == error:
        return made.score(subject)
    return results is not None and results.error == error and made.collect(subject)


def _verdict(plan: StagePlan) -> dict[str, Any]:
    """Return the stage's verdict so far, if any, and whether it is provisional."""
    try:
        advice = Recommendation.read(plan.results / RECOMMENDATION)
    except ResultsError:  # not written yet, or listed as damaged
        return {"verdict": None, "provisional": None}
    return {"verdict": advice.verdict, "provisional": advice.provisional}


def _stage_files(plan: StagePlan) -> tuple[dict[str, str], list[str]]:
    """Return the states of the stage's files, and a sentence for each that cannot be used."""
    names = [*stage_outputs(plan)]
    names += [str(path.relative_to(plan.results)) for path in plan.figures.values()]
    return _states({name: plan.results / name for name in names}, STAGE_READERS)


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


def failures(plan: StagePlan, steps: Sequence[Candidate]) -> list[str]:
    """Return the last errors of the jobs that failed, with their logs.

    Args:
        steps: The steps and merges to report, besides the bridge.

    Returns:
        A sentence for each error, that of the check before the jobs first.
    """
    found = stage_status(plan, steps)
    labels = {str(step): candidate_label(step) for step in steps}
    lines = [f"check: {found['check']} ({plan.check_log})"] if found["check"] else []
    return lines + [
        f"{labels.get(name, name)}: {subject['error']} ({subject['log']})"
        for name, subject in found["subjects"].items()
        if subject["error"]
    ]


def _subject(plan: StagePlan, folder: Path, log: Path, has_deltas: bool) -> dict[str, Any]:
    paths = {tier: folder / TIERS[tier].summary_file for tier in plan.tiers}
    readers: Readers = {
        tier: partial(lambda tier, path: read_tier_file(path.parent, tier), tier)
        for tier in plan.tiers
    }
    if has_deltas:
        paths["deltas"], readers = folder / DELTAS, {**readers, "deltas": StepDeltas.read}
    files, damaged = _states(paths, readers)
    log = latest_log(log, plan.collect_log(folder))
    error = last_error(log) if "missing" in files.values() else None
    running = is_running(log, folder)
    otherwise = "failed" if error else "running" if running else "missing"
    files |= {
        name: otherwise for name, state in files.items() if state == "missing" and name != "deltas"
    }
    return {
        "files": files,
        "error": error,
        "progress": job_progress(log) or "begun" if running else None,
        "log": str(log) if error else None,
        "damaged": damaged,
    }


def status_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return all stages in one table, then progress of running jobs and errors of failed ones.

    Args:
        found: What `stage_status` returned, by stage.

    Returns:
        Several lines, without a line break at the end.
    """
    columns = (*TIERS, "deltas")
    rows = [["stage", "step", *columns]]
    running, errors = [], []
    for stage, entry in found.items():
        running += [f"{stage} prefill, {name}: {how}" for name, how in entry["prefill"].items()]
        for name, subject in entry["subjects"].items():
            is_deleted = subject.get("deleted") and "done" in subject["files"].values()
            label = f"{name} (deleted)" if is_deleted else name
            rows.append([stage, label, *(subject["files"].get(column, "–") for column in columns)])
            if subject["progress"]:
                running.append(f"{stage} {name}: {subject['progress']}")
            if subject["error"]:
                errors.append(f"{stage} {name}: {subject['error']} ({subject['log']})")
            errors += [f"{stage} {name}: {line}" for line in subject["damaged"]]
        errors += [f"{stage}: {line}" for line in entry["damaged"]]
    lines = [align(rows, keys=2), ""]
    for stage, entry in found.items():
        missing = [n for n, state in entry["files"].items() if state in ("missing", "outdated")]
        verdict = f"; {entry['verdict']}" if entry["verdict"] else ""
        verdict += ", provisional" if verdict and entry["provisional"] else ""
        lines.append(f"{stage}: {'complete' if entry['complete'] else 'incomplete'}{verdict}")
        lines += [f"  {entry['left']}"] if entry["left"] else []
        lines += [f"  to come: {first_few(missing, 4)}"] if missing else []
        lines += [f"  check: {entry['check']}"] if entry["check"] else []
        lines += [f"  {entry['checkpoints']}"] if entry["checkpoints"] else []
    return "\n".join([*lines, *running, *errors])
