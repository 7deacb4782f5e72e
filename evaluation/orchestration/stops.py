"""Errors that end a run of Snakemake before or between jobs, as one sentence."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from snakemake.exceptions import WorkflowError

from evaluation.checkpoints.locations import absent_folder
from evaluation.checkpoints.subjects import Subject
from evaluation.errors import EvaluationError
from evaluation.escaping import terminal_text
from evaluation.exit_codes import machine_fault, out_of_memory

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def or_stop(
    function: Callable[Arguments, Answer], *arguments: Arguments.args, **keywords: Arguments.kwargs
) -> Answer:
    """Call a function of the package; its errors, and the machine's, end the run as one sentence.

    Args:
        function: What is called.
        *arguments: Its arguments.
        **keywords: Its arguments by name.

    Returns:
        What the function returns.

    Raises:
        WorkflowError: In place of an EvaluationError, OSError or MemoryError.
    """
    try:
        return function(*arguments, **keywords)
    except EvaluationError as error:
        raise WorkflowError(terminal_text(str(error))) from None
    except OSError as error:
        raise WorkflowError(machine_fault(error)) from None
    except MemoryError:
        raise WorkflowError(out_of_memory()) from None


def require_checkpoint(subject: Subject) -> None:
    """Stop before anything runs if a checkpoint that is to be scored is not there.

    Args:
        subject: The step, merge or bridge to score.

    Raises:
        WorkflowError: When it is not there; names its key in the configuration.
    """
    if absent := absent_folder(subject.checkpoint):
        places = {"merge": f"merges.{subject.merge}", "bridge": "bridge", "step": "steps"}
        place = places[subject.role]
        raise WorkflowError(
            f"stages.{subject.plan.name}.{place}: {absent}: no checkpoint there (no model_config.json, "
            "config.yaml or config.json); correct its path, wait until it is saved, or take "
            f"it out of `{place.partition('.')[0]}`"
        )
