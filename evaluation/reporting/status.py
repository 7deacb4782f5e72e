"""What is done, running, failed or missing, from a stage's results and logs."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.write import DELTAS, RECOMMENDATION, STAGE_TABLE
from evaluation.reporting.terminal import align
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

RUNNING_SECONDS = 15 * 60
"""A log that was written to since then, and tells no error, is taken for that of a running job."""

LOG_END = 1 << 16
"""Bytes of a log, at its end, in which its last sentence is looked for."""


def stage_status(plan: StagePlan, steps: Sequence[int]) -> dict[str, Any]:
    """State of each step and of the stage's own files; `complete` if nothing is missing.

    A state is `done`, `running`, `failed`, `missing` or `damaged` (empty, or not the JSON that it
    should be); `check` is what the check before the jobs ended with, if it stopped them.
    """
    has_bridge = plan.stage.bridge is not None
    subjects = {
        str(step): _subject(plan, plan.step_folder(step), plan.step_log(step), has_bridge)
        for step in steps
    }
    if has_bridge:
        subjects["bridge"] = _subject(plan, plan.bridge_folder, plan.bridge_log, False)
    names = ["summary.csv", "report.html"]
    names += [STAGE_TABLE, DELTAS, RECOMMENDATION] if has_bridge else []
    names += [str(path.relative_to(plan.results)) for path in plan.figures.values()]
    files = {name: _state(plan.results / name, "missing") for name in names}
    states = [state for subject in subjects.values() for state in subject["files"].values()]
    complete = all(state == "done" for state in (*states, *files.values()))
    return {
        "stage": plan.name,
        "complete": complete,
        "check": None if complete else last_error(plan.check_log),
        "subjects": subjects,
        "files": files,
    }


def failures(plan: StagePlan, steps: Sequence[int]) -> list[str]:
    """What the jobs that failed said last, with their logs; empty if none has failed."""
    found = stage_status(plan, steps)
    lines = [f"check: {found['check']} ({plan.check_log})"] if found["check"] else []
    return lines + [
        f"{'bridge' if name == 'bridge' else f'step {name}'}: {subject['error']} ({subject['log']})"
        for name, subject in found["subjects"].items()
        if subject["error"]
    ]


def _subject(plan: StagePlan, folder: Path, log: Path, has_deltas: bool) -> dict[str, Any]:
    wanted: dict[str, str] = {tier: TIERS[tier].summary_file for tier in plan.tiers}
    wanted |= {"deltas": DELTAS} if has_deltas else {}
    found = {name: _state(folder / file, "missing") for name, file in wanted.items()}
    error = None if all(state == "done" for state in found.values()) else last_error(log)
    otherwise = "failed" if error else "running" if _is_fresh(log) else "missing"
    files = {
        name: otherwise if state == "missing" and name != "deltas" else state
        for name, state in found.items()
    }
    damaged = [str(folder / wanted[name]) for name in files if files[name] == "damaged"]
    return {
        "files": files,
        "error": error,
        "log": str(log) if error else None,
        "damaged": damaged,
    }


def _state(path: Path, otherwise: str) -> str:
    """`done`, `damaged`, or `otherwise` where there is nothing."""
    if not path.exists():
        return otherwise
    if not path.is_file() or path.stat().st_size == 0:
        return "damaged"
    if path.suffix == ".json":
        try:
            content = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            return "damaged"
        return "done" if isinstance(content, dict) else "damaged"
    return "done"


def last_error(log: Path) -> str | None:
    """The sentence with which a job ended, if it did."""
    if not log.is_file():
        return None
    with open(log, "rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_END))
        lines = file.read().decode("utf-8", "replace").splitlines()
    errors = [line for line in lines[-20:] if line.startswith(("error: ", "Traceback"))]
    return errors[-1].removeprefix("error: ") if errors else None


def _is_fresh(log: Path) -> bool:
    return log.exists() and time.time() - log.stat().st_mtime < RUNNING_SECONDS


def status_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """All stages in one table, then the sentences of failed jobs."""
    columns = ("tier2", "tier3", "tier4", "deltas")
    rows = [["stage", "step", *columns]]
    errors = []
    for stage, entry in found.items():
        for name, subject in entry["subjects"].items():
            rows.append([stage, name, *(subject["files"].get(column, "–") for column in columns)])
            if subject["error"]:
                errors.append(f"{stage} {name}: {subject['error']} ({subject['log']})")
            for path in subject["damaged"]:
                errors.append(f"{stage} {name}: {path} is damaged; remove it and run again")
    lines = [align(rows), ""]
    for stage, entry in found.items():
        missing = [name for name, state in entry["files"].items() if state != "done"]
        lines.append(f"{stage}: {'complete' if entry['complete'] else 'incomplete'}")
        lines += [f"  to come: {', '.join(missing)}"] if missing else []
        lines += [f"  check: {entry['check']}"] if entry["check"] else []
    return "\n".join([*lines, *errors])
