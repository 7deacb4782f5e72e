"""A run of the workflow as its rules see it: configuration, targets, and the inputs of each rule.

The main process reads the configuration and looks at the disk; it changes no file. The jobs that it
starts read the rules again, and get configuration and name of the run by environment variables: they
make what they were planned for, and look at no checkpoint.
"""

import os
import socket
import uuid
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import yaml
from snakemake.exceptions import WorkflowError

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.subjects import Subject, bridge_subject, stage_subjects, step_subject
from evaluation.errors import CheckpointError, ConfigError, EvaluationError, printable_lines
from evaluation.files import fingerprint
from evaluation.flow.steps import is_ready, with_known_steps
from evaluation.flow.targets import ScoringJob, StepTarget, Targets, batches
from evaluation.settings.config import Config, validate_config
from evaluation.settings.effective import effective_path, effective_text
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.settings.steps import step_of_results
from evaluation.settings.yaml_files import read_yaml

RUN, SETTINGS = "EVALUATION_RUN", "EVALUATION_SETTINGS_"
"""Environment variables for jobs: name of a run, and with the key of what was given the text of its
configuration, whose steps are those that the main process has found."""

NOW = "/proc/self/fd"
"""A folder that is newer than any result, and of which no checksum is taken. Snakemake makes a missing input
of a file that exists only if another input is newer; else an outdated file would stay as it is."""

WAITING = "EVALUATION_WAITING"
"""Environment variable of a watcher: listed steps that are not there yet are no mistake."""

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class RunError(WorkflowError):  # type: ignore[misc]  # Snakemake has no types
    """An error of which Snakemake prints only the message, without a traceback."""

    # A property, because `contextlib` sets the attribute: its setter ignores the value.
    __traceback__ = property(lambda self: None, lambda self, places: None)


def or_stop(
    function: Callable[Arguments, Returned], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Returned:
    """Call a function; turn its errors, and those of the system, into a RunError."""
    try:
        return function(*arguments, **named)
    except (EvaluationError, OSError) as error:
        raise RunError(printable_lines(str(error))) from None


class PlannedRun:
    """The stages of a run, and what the rules ask; each answer that cannot be given is a RunError."""

    def __init__(self, content: dict[str, Any], files: Sequence[str | Path]) -> None:
        me = f"{socket.gethostname()}-{os.getpid()}-"
        self.name = os.environ.setdefault(RUN, me + uuid.uuid4().hex[:8])
        self.settings = SETTINGS + fingerprint([content, list(map(str, files))])
        self.is_job = self.settings in os.environ and not self.name.startswith(me)
        self.targets = Targets()
        self.config = or_stop(self._job_config if self.is_job else self._config, content, files)
        self.config_file = str(effective_path(self.config).absolute())
        self.plans = or_stop(plan_stages, self.config)
        self.by_results = {str(plan.results): plan for plan in self.plans.values()}
        self.setups = {plan.cache.name: plan.cache for plan in self.plans.values()}
        self.verifies = any(plan.suite.generation_tasks for plan in self.plans.values())

    def _job_config(self, content: dict[str, Any], files: Sequence[str | Path]) -> Config:
        return validate_config(yaml.safe_load(os.environ[self.settings]), "the run's configuration")

    def _config(self, content: dict[str, Any], files: Sequence[str | Path]) -> Config:
        paths = [Path(file) for file in files]
        for path in paths:
            if path.suffix in (".yaml", ".yml"):
                read_yaml(path)  # its mistakes, with its lines
        origin = " + ".join(map(str, paths)) or "configuration"
        config = with_known_steps(validate_config(content, origin, paths), self.targets)
        os.environ[self.settings] = effective_text(config)
        return config

    def stages_of(self, setup: str) -> list[StagePlan]:
        """Return the stages whose caches are in a folder of this name."""
        return [plan for plan in self.plans.values() if plan.cache.name == setup]

    @cached_property
    def prefilled(self) -> list[str]:
        """The records of all caches."""
        targets = (self.targets.prefill(self.stages_of(setup)) for setup in self.setups)
        return [str(target.path) for target in targets]

    def collected(self, *results: str) -> list[str]:
        """Return what a report at every call needs: the records of stages' results."""
        if self.is_job:
            return []
        waited = [subject for folder in results for subject in self.subjects(folder)]
        if WAITING in os.environ:
            waited = [subject for subject in waited if is_ready(subject, self.targets)]
        return [NOW, *(str(self._target(subject).path) for subject in waited)]

    def scored(self, results: str, place: str) -> list[str]:
        """Return what the results of a checkpoint wait for: the job that scores it, if it has to be.

        A failed one is named as well, so that `--forcerun score` tries it again.
        """
        if self.is_job:
            return []
        batch = self._batches(results).get(or_stop(self._subject, results, place).folder)
        return [f"{results}/.made/scored/{batch.name}-{batch.key}"] if batch else []

    def scored_before(self, results: str, batch: str, key: str, part: str) -> list[str]:
        """Return what a scoring job waits for: its parts, or of a bridge that of the same step."""
        plan, parts = self.by_results[results], self.config.generation.parts
        if not part and not self.is_job and parts > 1 and _is_shared(plan):
            name = f"{results}/.made/scored/{batch}-{key}"
            return [f"{name}.{number}of{parts}" for number in range(1, parts + 1)]
        if self.is_job or batch != "bridge":
            return []
        subject = or_stop(self._subject, results, batch)
        bridge = subject.plan.stage.bridge
        owner = self.plans.get(bridge.stage or "") if bridge else None
        steps = owner.stage.steps if owner else ()
        if owner is None or not isinstance(steps, tuple) or subject.step not in steps:
            return []
        own = step_subject(owner, subject.step)
        lacks = or_stop(self.targets.score, own).record is None
        return self.scored(str(owner.results), f"by_checkpoint/{own.folder.name}") if lacks else []

    def result(self, results: str, place: str) -> list[str]:
        """Return the record of a checkpoint's results, of which somebody wants a file."""
        if self.is_job:
            return []
        target = self._target(or_stop(self._subject, results, place))
        return [str(target.path), *([] if target.record else [NOW])]

    def _target(self, subject: Subject) -> StepTarget:
        target = or_stop(self.targets.collect, subject)
        if or_stop(self.targets.score, subject).record is None:
            or_stop(_require_checkpoint, subject)
        return target

    def _batches(self, results: str) -> dict[Path, ScoringJob]:
        """Return the job of each checkpoint that has to be scored, by the folder of its results."""
        return self.targets.once(lambda: or_stop(self._batched, results), "batches", results)

    def _batched(self, results: str) -> dict[Path, ScoringJob]:
        is_shared = self.config.generation.parts > 1 and _is_shared(self.by_results[results])
        size = 1 if is_shared else self.config.scoring.checkpoints_per_job
        found = batches(self.targets, self.subjects(results), size)
        return {subject.folder: batch for batch in found for subject in batch.subjects}

    def subjects(self, results: str) -> list[Subject]:
        """Return a stage's checkpoints; RunError where there is none."""
        return self.targets.once(lambda: or_stop(self._look, results), "subjects", results)

    def _look(self, results: str) -> list[Subject]:
        plan = self.by_results[results]
        subjects = stage_subjects(plan, self.plans)
        if not isinstance(plan.stage.steps, tuple):
            raise CheckpointError(
                f"stages.{plan.name}: no checkpoint under {plan.stage.checkpoints} is complete yet; "
                "the warnings above this say what each lacks"
            )
        self.targets.look_at(subjects)
        return subjects

    def _subject(self, results: str, place: str) -> Subject:
        plan = self.by_results[results]
        if place == "bridge":
            return bridge_subject(plan, self.plans)
        step = step_of_results(Path(place))
        if not isinstance(plan.stage.steps, tuple) or step not in plan.stage.steps:
            raise ConfigError(f"stages.{plan.name}.steps: {step} is none of them")
        return step_subject(plan, step)


def _require_checkpoint(subject: Subject) -> None:
    """Raise ConfigError with the key of a checkpoint that is to be scored and missing."""
    absent = subject.checkpoint
    if configuration_file(absent) is None:
        key = "bridge" if subject.role == "bridge" else "steps"
        raise ConfigError(
            f"stages.{subject.plan.name}.{key}: {absent}: no checkpoint there (no model_config.json, "
            f"config.yaml or config.json); correct its path, wait until it is saved (`watch` scores the "
            f"others now), or take it out of `{key}`"
        )


def _is_shared(plan: StagePlan) -> bool:
    """Return whether several jobs may score a checkpoint of a stage."""
    return bool(plan.suite.generation_tasks) and not plan.stage.command


def steps_option(batch: str, part: str) -> str:
    """Return the options that name the checkpoints of a batch, and a part such as `.3of8`."""
    which = "--bridge" if batch == "bridge" else f"--step {batch.replace('_', ' ')}"
    return f"{which} --part {part[1:].replace('of', '/')}" if part else which


def place_option(place: str) -> str:
    """Return the same for the folder of a checkpoint's results."""
    return "--bridge" if place == "bridge" else f"--step {step_of_results(Path(place))}"
