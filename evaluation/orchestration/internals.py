"""Every use of undocumented parts of Snakemake and its Slurm executor, each checked before it is used.

workflow.dag_settings.rerun_triggers    Snakemake's own reasons to run a job again are switched off:
                                        records decide (records.py)
workflow.dag_settings.force_incomplete, workflow.dag.ignore_incomplete
                                        files of a killed run are neither refused nor made again: each is
                                        written atomically, and its record says what it is
workflow.execution_settings.keep_incomplete  a failed job does not remove files that existed before it
workflow.dag.forcefiles, .forcerun      outdated files are made again, as if named by `--forcerun`
workflow.execute(executor_plugin=…)     the first place that knows the targets and whether the run is
                                        a dry run; input functions cannot check, as Snakemake takes an
                                        old file and ignores what they raise
workflow.modifier                       whether our rules are a module of another workflow, and their
                                        names there (common.smk)
workflow._onstart                       that workflow's own start hook; ours runs before it
workflow.scheduler._lock                the handler of a stop signal takes it, and waits for ever if the
                                        thread that it interrupts holds it: replaced by a reentrant
                                        lock
workflow.scheduler._executor            the Slurm executor, and the name of its jobs (run_uuid)
executor.check_active_jobs, report_job_…    while the controller is unreachable, all queries of a round
                                        fail; the executor then forgets the jobs that it asked about,
                                        and waits for ever. Here they stay on its list
plugin.query_job_status                 shows which jobs are stuck (slurm.py), so that the queue is
                                        queried once a round
"""

import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from evaluation.errors import EvaluationError

_TESTED = "9.27"


def _require(owner: object, *names: str) -> None:
    """Refuse a Snakemake that lacks an attribute we rely on; name the tested version."""
    missing = [name for name in names if not hasattr(owner, name)]
    if missing:
        raise EvaluationError(
            f"Snakemake {version('snakemake')} has no {type(owner).__name__}.{missing[0]}, which this "
            f"workflow relies on; install the version it is tested with (pip install 'snakemake~={_TESTED}')"
        )


@dataclass(frozen=True)
class Internals:
    """Reads and changes undocumented parts of Snakemake's workflow."""

    workflow: Any

    @property
    def is_module(self) -> bool:
        """Whether the rules that are being read are a module of another workflow."""
        return not self.workflow.modifier.is_main_snakefile()

    @property
    def is_forced_by_hand(self) -> bool:
        """Whether the run was started with `--forcerun`."""
        return bool(self.workflow.dag_settings.forcerun)

    @property
    def slurm_executor(self) -> Any | None:
        """The Slurm executor of the run; None if jobs run on this machine."""
        executor = getattr(self.workflow.scheduler, "_executor", None)
        return executor if hasattr(executor, "run_uuid") else None

    def decide_by_records(self) -> None:
        """Let records alone decide what runs again; files of a failed run are complete or absent."""
        from snakemake.settings.enums import RerunTrigger

        workflow = self.workflow
        _require(workflow, "dag_settings", "dag", "execution_settings", "is_main_process")
        _require(workflow.dag, "forcefiles", "ignore_incomplete")
        _require(workflow.dag_settings, "rerun_triggers", "force_incomplete", "forcerun")
        _require(RerunTrigger, "MTIME")
        workflow.dag_settings.rerun_triggers = frozenset({RerunTrigger.MTIME})
        workflow.dag_settings.force_incomplete = True
        workflow.dag.ignore_incomplete = True
        if workflow.execution_settings is not None:  # None if no job is to run
            _require(workflow.execution_settings, "keep_incomplete")
            workflow.execution_settings.keep_incomplete = True

    def force(self, file: str) -> None:
        """Have Snakemake make a file again that exists.

        Args:
            file: An output of one of its rules.
        """
        self.workflow.dag.forcefiles.add(file)

    def before_execution(self, prepare: Callable[[bool], Iterable[str]]) -> None:
        """Have a function called before Snakemake plans anything.

        Args:
            prepare: Gets whether the run is a dry run; the lines it returns are logged after the run.
        """
        from snakemake.logging import logger

        execute = self.workflow.execute

        def prepared(*, executor_plugin: Any, **others: Any) -> Any:
            lines = prepare(executor_plugin.common_settings.dryrun_exec)
            done = execute(executor_plugin=executor_plugin, **others)
            for line in lines:
                logger.info(line)
            return done

        self.workflow.execute = prepared

    def before_start(self, prepare: Callable[[], None]) -> None:
        """Have a function called before the workflow's own `onstart`.

        Args:
            prepare: Called once, even if the module is used several times.
        """
        begin = self.workflow._onstart

        def onstart(log: Any) -> None:
            prepare()
            begin(log)

        if not hasattr(begin, "prepares"):
            onstart.prepares = True  # type: ignore[attr-defined]
            self.workflow._onstart = onstart

    def let_stops_in(self) -> None:
        """Let a stop signal end a run at any moment; called before its scheduler starts."""
        _require(self.workflow.scheduler, "_lock")
        self.workflow.scheduler._lock = threading.RLock()


def keep_unanswered(executor: Any) -> None:
    """Keep jobs on the executor's list if a round of queries reported nothing about them.

    Args:
        executor: Snakemake's Slurm executor.
    """
    ended: set[str] = set()
    for method in ("report_job_success", "report_job_error"):
        setattr(executor, method, _noting(getattr(executor, method), ended))
    ask = executor.check_active_jobs

    async def check_active_jobs(jobs: list[Any]) -> AsyncIterator[Any]:
        running = set()
        async for job in ask(jobs):
            running.add(job.external_jobid)
            yield job
        for job in jobs:
            if job.external_jobid not in running | ended:
                yield job

    executor.check_active_jobs = check_active_jobs


def _noting(report: Callable[..., None], ended: set[str]) -> Callable[..., None]:
    def noting(job: Any, *arguments: Any, **keywords: Any) -> None:
        ended.add(job.external_jobid)
        report(job, *arguments, **keywords)

    return noting


def look_at_states(executor: Any, look: Callable[[Mapping[str, str]], None]) -> None:
    """Have a function called in every round of queries.

    Args:
        executor: Snakemake's Slurm executor.
        look: Gets the state of each job by its id, as the executor has just received them.
    """
    plugin: Any = sys.modules[type(executor).__module__]
    ask = plugin.query_job_status

    async def query_job_status(*arguments: Any) -> tuple[dict[str, str] | None, float | None]:
        answer: tuple[dict[str, str] | None, float | None] = await ask(*arguments)
        look(answer[0] or {})
        return answer

    plugin.query_job_status = query_job_status
