"""Errors that end a run of Snakemake before or between jobs, with a one-sentence message."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from snakemake.exceptions import WorkflowError

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.subjects import Subject
from evaluation.errors import EvaluationError, printable_lines

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class RunError(WorkflowError):  # type: ignore[misc]  # Snakemake has no types
    """An error of which Snakemake prints only the message, without a traceback."""

    # A property, because `contextlib` sets the attribute: its setter ignores the value.
    __traceback__ = property(lambda self: None, lambda self, places: None)


def or_stop(
    function: Callable[Arguments, Returned],
    *arguments: Arguments.args,
    **keywords: Arguments.kwargs,
) -> Returned:
    """Call a function; turn its errors, and those of the system, into a RunError."""
    try:
        return function(*arguments, **keywords)
    except (EvaluationError, OSError) as error:
        raise RunError(printable_lines(str(error))) from None


def require_checkpoint(subject: Subject) -> None:
    """Raise RunError with the key of a checkpoint that is to be scored and missing."""
    absent = subject.checkpoint
    if configuration_file(absent) is None:
        key = "bridge" if subject.role == "bridge" else "steps"
        raise RunError(
            f"stages.{subject.plan.name}.{key}: {absent}: no checkpoint there (no model_config.json, "
            f"config.yaml or config.json); correct its path, wait until it is saved (`watch` scores the "
            f"others now), or take it out of `{key}`"
        )
