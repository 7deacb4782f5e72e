"""Prints a line for each step of a run, with how many of all steps are done.

Snakemake's own log in `.snakemake/log` stays complete, with all inputs and reasons. `--quiet` and
`--dry-run` filter these lines like Snakemake's; `--verbose` and `--logger` replace them.
"""

import logging
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from snakemake.logging import ColorizingTextHandler, get_event, logger, show_logs
from snakemake_interface_logger_plugins.common import LogEvent

from evaluation.errors import first_few
from evaluation.results.job_logs import last_error

_STREAM = "DefaultStreamHandler"
"""Name of Snakemake's terminal handler, absent if a logger plugin replaces it."""

_OMITTED = (
    LogEvent.WORKFLOW_STARTED,
    LogEvent.RESOURCES_INFO,
    LogEvent.JOB_STARTED,
    LogEvent.PROGRESS,
)
_NOISE = (
    "Select jobs to execute", "Removing temporary output", "Would remove temporary",
    "Using shell:", "Reasons:", "Cannot restore ",
    "--keep-incomplete mode is set", "Conda environments: ignored", "Singularity containers: ignored",
    "SLURM run ID:",
)  # fmt: skip
_SUBMITTED = re.compile(
    r"(?:Job|Submitted job) (?P<job>\d+) (?:has been submitted with SLURM jobid|with external jobid)"
    r" '?(?P<id>[^ ']+)"
)

# A warning as logging writes it, or a finding of `doctor`: `warning: Slurm`, with its text below.
_FINDING = re.compile(r"^(?:[\d:]{8} )?(WARNING|warning:|fault:) (.+(?:\n +.+)*)", re.MULTILINE)


def print_steps(is_dry: bool) -> None:
    """Print Snakemake's log records as steps, unless `--verbose` or another logger is chosen."""
    text_handler = next((handler for handler in logger.handlers if handler.name == _STREAM), None)
    if isinstance(text_handler, ColorizingTextHandler) and logger.level > logging.DEBUG:
        logger.removeHandler(text_handler)
        logger.addHandler(RunLog(text_handler, is_dry))


def running_log() -> "RunLog | None":
    """Return the handler that prints this run's steps; None if another one is in use."""
    return next((handler for handler in logger.handlers if isinstance(handler, RunLog)), None)


class RunLog(ColorizingTextHandler):  # type: ignore[misc]  # Snakemake has no types
    """Prints the steps of a run in place of Snakemake's handler `own`, with its stream and filters."""

    def __init__(self, text_handler: ColorizingTextHandler, is_dry: bool) -> None:
        super().__init__(text_handler.nocolor, text_handler.stream, text_handler.formatter)
        self.filters = text_handler.filters
        self.is_dry = is_dry
        self._done, self._all = 0, 0
        self._titles: dict[int, str] = {}
        self._logs: dict[str, str] = {}
        self._stats = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Note steps and their logs, also of records that `--quiet` hides."""
        event, about = get_event(record), record.__dict__
        if event == LogEvent.RUN_INFO:
            self._all = about["stats"]["total"]
        elif event == LogEvent.JOB_INFO:
            self._titles[about["jobid"]] = _step_title(about["rule_name"], about["wildcards"])
            self._logs |= dict.fromkeys(about["log"], self._titles[about["jobid"]])
        return bool(super().filter(record))

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record's lines."""
        try:
            if text := "\n".join(self._lines(record)):
                self.stream.write(self.decorate(record, text) + "\n")
                self.flush()
        except BrokenPipeError:
            raise
        except Exception:  # noqa: BLE001 -- as logging handlers do: a message never ends a run
            self.handleError(record)

    def warnings(self) -> list[str]:
        """Return each warning in the steps' logs once, after the names of the first steps that had it."""
        by_text: dict[str, list[str]] = {}
        for log, step in self._logs.items():
            for warning in _findings(Path(log), "WARNING", "warning:"):
                by_text.setdefault(warning, []).append(step)
        return [f"{first_few(list(dict.fromkeys(steps)), 3)}: {w}" for w, steps in by_text.items()]

    def _lines(self, record: logging.LogRecord) -> Iterator[str]:
        event, about = get_event(record), record.__dict__
        if event == LogEvent.JOB_INFO:
            yield from self._planned(about) if self.is_dry else self._begun(about)
        elif event == LogEvent.JOB_FINISHED:
            yield from self._finished(about["job_id"])
        elif event == LogEvent.JOB_ERROR:
            yield from self._failed(record)
        elif event not in _OMITTED and not self._is_repeated(record):
            yield self._submitted(self.format(record))

    def _planned(self, about: Mapping[str, Any]) -> Iterator[str]:
        """Show why a step will run; a mere target has no output, so no reason."""
        files = [Path(text.removesuffix(" (update)")) for text in about["output"]]
        why = ("outdated" if all(file.exists() for file in files) else "missing") if files else ""
        yield f"{self._titles[about['jobid']]}{why and f': {why}'}"

    def _begun(self, about: Mapping[str, Any]) -> Iterator[str]:
        """Show that a long local step has begun; a submitted one is shown with its job number instead."""
        if about["local"] and about["benchmark"]:
            yield f"{_clock()} {self._titles[about['jobid']]}: begun ({', '.join(about['log'])})"

    def _submitted(self, text: str) -> str:
        if match := _SUBMITTED.match(text):
            return f"{_clock()} {self._title(int(match['job']))}: submitted as job {match['id']}"
        return text

    def _finished(self, job: int) -> Iterator[str]:
        self._done += 1
        yield f"{_clock()} {self._title(job)}: done; {self._done} of {self._all} steps"

    def _failed(self, record: logging.LogRecord) -> Iterator[str]:
        """Show the error message of a failed job; Snakemake's message if the job has none."""
        about, step = record.__dict__, self._title(record.__dict__["jobid"])
        logs = [Path(log) for log in about["log"]]
        reasons = [f"{error} ({log})" for log in logs if (error := last_error(log))]
        yield f"{_clock()} {step}: failed: {reasons[0]}" if reasons else self.format(record)
        for log in logs:
            yield from (f"  {fault}" for fault in _findings(log, "fault:"))
        if reasons and getattr(self.formatter, "show_failed_logs", False):
            yield from show_logs(about["log"])

    def _title(self, job: int) -> str:
        return self._titles.get(job, f"job {job}")

    def _is_repeated(self, record: logging.LogRecord) -> bool:
        """Return whether our lines, or the end of a dry run, already show this message."""
        text = str(record.msg or "")
        if self.is_dry and get_event(record) == LogEvent.RUN_INFO:
            is_first, self._stats = not self._stats, text
            return is_first
        return text.startswith(_NOISE)


def _step_title(rule: str, wildcards: Mapping[str, str]) -> str:
    """Return the rule of a step with its checkpoint, cache or file."""
    values = [value.rpartition("/")[2] for name, value in wildcards.items() if name != "setup"]
    values = [value for value in values if not rule.endswith(f"_{value}")]
    return " ".join([rule, *values])


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def _findings(log: Path, *kinds: str) -> list[str]:
    """Return the warnings, or faults that `doctor` found, in a job's log."""
    if not log.is_file():
        return []
    matches = _FINDING.finditer(log.read_text(encoding="utf-8", errors="replace"))
    return list(
        dict.fromkeys(re.sub(r":?\n +", ": ", match[2]) for match in matches if match[1] in kinds)
    )
