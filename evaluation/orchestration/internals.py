"""Every use of undocumented parts of Snakemake and its Slurm executor; what is set is checked before.

settings    workflow.dag_settings, .execution_settings: Snakemake's own reasons to run a job again are
            switched off, as records decide (records.py). Files of a killed run are neither refused nor
            made again, and a failed job removes none: each is written atomically, and its record says
            what it is
            dag_settings.targets, .forcerun, resource_settings, executor_settings.requeue,
            deployment_settings: what the command line and the profile say
workflow    execute(executor_plugin=…): the first place that knows the targets and whether the run is a dry
            run; input functions cannot check, as Snakemake takes an old file and ignores what they raise
            modifier: whether our rules are a module of another workflow, and their names there (common.smk)
            is_main_process, configfiles, overwrite_configfiles: whether a job reads the rules, and from where
            default_target: what is made where a Snakefile of `init` has our rules, and no target is named
            rules, of each its name, is_producer, get_wildcards, input: which of our files a target needs
            _onstart, _onerror: that workflow's own hooks; ours run before them
dag         forcefiles: outdated files are made again, as if named by `--forcerun`
            jobs, needrun_jobs: what a run makes; of each job its rule and inputs
scheduler   _lock: the handler of a stop signal takes it, and waits for ever if the thread that it interrupts
            holds it: replaced by a reentrant lock
            _executor: the Slurm executor, and the name of its jobs (run_uuid)
executor    check_active_jobs, report_job_…, run_jobs, and the plugin's query_job_status: while the controller
            is unreachable, all queries of a round fail; the executor then forgets the jobs that it asked
            about, and waits for ever. Here they stay on its list. A job that the controller forgets is ended
            by its outputs, compared with those before it. The states of all jobs show which are stuck
            (slurm.py), so that the queue is queried once a round
"""

import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from evaluation.errors import EvaluationError

_SLURM = "snakemake_executor_plugin_slurm"

_LEVELS, _MOST_FILES = 20, 20_000
"""Limits for rules that need each other without end, such as one that makes `{file}` from `{file}.gz`."""


def _require(owner: object, *names: str) -> None:
    """Refuse a Snakemake or executor in which we would set an attribute that it does not have."""
    for name in names:
        if not hasattr(owner, name):
            raise EvaluationError(
                f"{type(owner).__module__} has no {name}, which this workflow sets; install the versions "
                "it is tested with (pip install -r locks/requirements.lock)"
            )


@dataclass(frozen=True)
class Internals:
    """Reads and changes undocumented parts of Snakemake's workflow."""

    workflow: Any

    def part(self, names: str) -> Any:
        """Return an attribute of the workflow, such as `dag_settings.targets`."""
        return attrgetter(names)(self.workflow)

    @property
    def is_module(self) -> bool:
        """Whether the rules that are being read are a module of another workflow."""
        return not self.part("modifier.is_main_snakefile")()

    @property
    def slurm_executor(self) -> Any | None:
        """The Slurm executor of the run; None if jobs run on this machine."""
        executor = self.part("scheduler._executor")
        return executor if type(executor).__module__.startswith(_SLURM) else None

    @property
    def jobs(self) -> list[Any]:
        """All jobs of the run, whether they are due or not."""
        return list(self.part("dag.jobs"))

    @property
    def due_jobs(self) -> list[Any]:
        """The jobs that the run makes."""
        return list(self.part("dag.needrun_jobs")())

    def make_by_default(self, rule: str) -> None:
        """Have a rule made where the command line names no target."""
        _require(self.workflow, "default_target")
        self.workflow.default_target = rule

    def _decide_by_records(self) -> None:
        """Let records alone decide what runs again; Snakemake passes these settings on to its jobs."""
        from snakemake.settings.enums import RerunTrigger

        dag, execution = self.part("dag_settings"), self.part("execution_settings")
        _require(dag, "rerun_triggers", "force_incomplete")
        _require(execution, "ignore_incomplete", "keep_incomplete")
        # Snakemake compares times whatever is set here. MTIME stays because an empty set is left out of the
        # command lines of jobs, which would then take all triggers.
        dag.rerun_triggers, dag.force_incomplete = frozenset({RerunTrigger.MTIME}), True
        execution.ignore_incomplete = execution.keep_incomplete = True

    def force(self, file: str) -> None:
        """Have Snakemake make a file again that exists."""
        self.part("dag.forcefiles").add(file)

    def before_execution(self, prepare: Callable[[bool], None]) -> None:
        """Have a function called before Snakemake plans anything, and let records decide what it runs again.

        Args:
            prepare: Gets whether the run is a dry run.
        """
        execute = self.part("execute")

        def prepared(*, executor_plugin: Any, **others: Any) -> Any:
            self._decide_by_records()
            prepare(executor_plugin.common_settings.dryrun_exec)
            return execute(executor_plugin=executor_plugin, **others)

        self.workflow.execute = prepared

    def before_hook(
        self, name: Literal["_onstart", "_onerror"], prepare: Callable[[], None]
    ) -> None:
        """Have a function called before what the workflow itself does when its run starts, or has failed."""
        hook = self.part(name)

        def prepared(log: Any) -> None:
            prepare()
            hook(log)

        if not hasattr(hook, "is_prepared"):
            prepared.is_prepared = True  # type: ignore[attr-defined]
            setattr(self.workflow, name, prepared)

    def targets(self) -> Collection[str]:
        """Return the run's targets, and the inputs of rules that these need; called after parsing.

        What an input function returns is not known before Snakemake plans the run.
        """
        rules = list(self.part("rules"))
        targets = self.part("dag_settings.targets") or [self.part("default_target")]
        latest = needed = dict.fromkeys(target for target in targets if target)
        for _ in range(_LEVELS):
            if len(needed) > _MOST_FILES:
                break
            files = (file for target in latest for rule in rules for file in _inputs(rule, target))
            latest = dict.fromkeys(file for file in files if file not in needed)
            needed = needed | latest
        return needed

    def let_stops_in(self) -> None:
        """Let a stop signal end a run at any moment; called before its scheduler starts."""
        scheduler = self.part("scheduler")
        _require(scheduler, "_lock")
        scheduler._lock = threading.RLock()


def _inputs(rule: Any, target: str) -> Iterator[str]:
    """Yield the inputs that a rule lists for a target; none if it makes another one."""
    from snakemake.io import apply_wildcards, is_callable

    if target == rule.name or rule.is_producer(target):
        wildcards = {} if target == rule.name else rule.get_wildcards(target)
        for file in rule.input:
            if not is_callable(file):
                yield str(apply_wildcards(file, wildcards))


def value_of(resource: Any) -> Any:
    """Return a resource's value as the profile or the command line gives it."""
    return resource.raw


def keep_unanswered(executor: Any, look: Callable[[Mapping[str, str]], None]) -> None:
    """Keep jobs on the executor's list as long as nothing is known about them; end forgotten ones.

    A round in which the queue does not answer says nothing. If it answers several times without a job,
    as controllers do that forget ended jobs, the job is over: it succeeded if it wrote its outputs.

    Args:
        look: Gets in every round the state of each job by its id, as the executor has just received them.
    """
    _require(executor, "check_active_jobs", "run_jobs", "report_job_success", "report_job_error")
    plugin: Any = sys.modules[type(executor).__module__]
    _require(plugin, "query_job_status")
    watch = _Watch()
    for method in ("report_job_success", "report_job_error"):
        setattr(executor, method, watch.noting(getattr(executor, method)))
    ask, run, query = executor.check_active_jobs, executor.run_jobs, plugin.query_job_status

    async def query_job_status(*arguments: Any) -> tuple[dict[str, str] | None, float | None]:
        answer: tuple[dict[str, str] | None, float | None] = await query(*arguments)
        watch.states = answer[0]
        look(answer[0] or {})
        return answer

    def run_jobs(jobs: list[Any]) -> None:
        for job in jobs:
            watch.before[job] = _outputs(job)
        run(jobs)

    async def check_active_jobs(jobs: list[Any]) -> AsyncIterator[Any]:
        watch.states, running = None, set()
        async for job in ask(jobs):
            running.add(job.external_jobid)
            yield job
        for job in jobs:
            if job.external_jobid in running | watch.ended:
                continue
            if not watch.is_forgotten(job.external_jobid):
                yield job
            elif watch.before.get(job.job) != _outputs(job.job):
                executor.report_job_success(job)
            else:
                executor.report_job_error(
                    job,
                    msg=f"Slurm has forgotten job {job.external_jobid}, which did not write its outputs.",
                )

    plugin.query_job_status = query_job_status
    executor.run_jobs = run_jobs
    executor.check_active_jobs = check_active_jobs


SILENT_ROUNDS = 5
"""Rounds of queries that are answered without a job until it counts as forgotten."""


class _Watch:
    """What is known about the jobs of a run."""

    def __init__(self) -> None:
        self.ended: set[str] = set()
        self.before: dict[Any, object] = {}
        self.states: Mapping[str, str] | None = None
        self._silent: Counter[str] = Counter()

    def noting(self, report: Callable[..., None]) -> Callable[..., None]:
        def noting(job: Any, *arguments: Any, **keywords: Any) -> None:
            self.ended.add(job.external_jobid)
            report(job, *arguments, **keywords)

        return noting

    def is_forgotten(self, job: str) -> bool:
        """Return whether the queue has been silent about a job often enough; counts this round."""
        if self.states is None:
            return False
        self._silent[job] = 0 if job in self.states else self._silent[job] + 1
        return self._silent[job] >= SILENT_ROUNDS


def _outputs(job: Any) -> list[object]:
    """Return the state of a job's outputs; a job that ended well has written them again."""
    states: list[object] = []
    for path in map(Path, job.output):
        status = path.stat() if path.exists() else None
        states.append(status and (status.st_ino, status.st_size, status.st_mtime_ns))
    return states
