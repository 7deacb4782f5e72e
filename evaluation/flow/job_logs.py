"""Read a job's log: the error that it ended with, or that it still runs.

Jobs run on any node and share nothing but files, so their logs are the only source.
"""

import time
from pathlib import Path

from evaluation.checkpoints.subjects import steps_so_far
from evaluation.records import recorded_error
from evaluation.settings.plan import StagePlan

RUNNING_SECONDS = 15 * 60
"""A job counts as running if its log was written to within this time and does not end with an error."""

SLURM_LOGS = Path("logs/slurm")
"""Slurm's own logs of failed jobs, where the profile has them (`slurm-logdir`)."""

ERRORS = ("error: ", "Traceback", "srun: error", "srun: fatal", "slurmstepd: error")
"""Beginnings of the lines that state why a job ended."""

LOG_END = 1 << 16
"""Bytes at the end of a log that are read."""


def checkpoint_logs(plan: StagePlan, step: int | None) -> list[Path]:
    """Return the logs of a checkpoint's jobs (None: the bridge's); a batch's has the names of its steps."""
    name, folder = "bridge" if step is None else str(step), plan.results / "eval_logs"
    results = plan.bridge_folder if step is None else plan.step_folder(step)
    own = plan.score_log(step)
    batches = [
        log for log in folder.glob("score/*.log") if name in log.stem.partition("-")[0].split("_")
    ]
    collects = folder.glob(f"collect/{results.relative_to(plan.results)}-*.log")
    return [log for log in (own, *batches, *collects) if log.is_file()]


def failures(plan: StagePlan) -> list[str]:
    """Return a sentence on each job of a stage that failed, the check before the jobs first."""
    error = last_error(plan.check_log)
    sentences = [f"check: {error} ({plan.check_log})"] if error else []
    for step in (*steps_so_far(plan), *([None] if plan.stage.bridge else [])):
        folder = plan.bridge_folder if step is None else plan.step_folder(step)
        error = recorded_error(folder, "score", "collect")
        if logs := checkpoint_logs(plan, step):
            log = latest_log(*logs)
            if error := error or last_error(log):
                sentences.append(f"{plan.label(step)}: {error} ({log})")
    return sentences


def remove_earlier(folder: Path, job: str, planned: str) -> None:
    """Remove the logs that a finished job left under earlier keys."""
    for log in {*folder.glob(f"{job}-*")} - {*folder.glob(f"{job}-{planned}*")}:
        log.unlink(missing_ok=True)


def latest_log(*logs: Path) -> Path:
    """Return the log that was written to last; the first where none exists."""
    return max(logs, key=lambda log: log.stat().st_mtime if log.is_file() else 0.0)


def last_error(log: Path) -> str | None:
    """Return the sentence with which a job ended; None if the log's end shows no error."""
    lines = _last_lines(log) or _slurm_lines(log)
    errors = [line for line in lines if line.startswith(ERRORS)]
    return errors[-1].removeprefix("error: ") if errors else None


def _slurm_lines(log: Path) -> list[str]:
    """Return the ends of Slurm's own logs on a job that ended before it wrote to its log."""
    job, _, key = log.stem.partition("-")
    if not key or not log.is_file():
        return []
    name = key if job == "prefill" else f"{job}_{key}"
    logs = SLURM_LOGS.glob(f"*/*{name}*/*.log")
    return [line for path in logs for line in _last_lines(path, 100)]


def is_running(log: Path, folder: Path | None = None) -> bool:
    """Return whether a log was written to recently, and does not end as a finished job's log.

    Args:
        folder: Folder of the job's results, which is the last line of a finished job; None: it has
            none.
    """
    is_fresh = log.is_file() and time.time() - log.stat().st_mtime < RUNNING_SECONDS
    return is_fresh and last_error(log) is None and _last_lines(log, 1) != [str(folder)]


def _last_lines(log: Path, count: int = 20) -> list[str]:
    """Return a log's last lines; each state of a progress bar is a line."""
    if not log.is_file():
        return []
    with open(log, "rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_END))
        return file.read().decode("utf-8", "replace").splitlines()[-count:]
