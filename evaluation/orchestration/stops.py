"""What ends a run of Snakemake before or between jobs, as one sentence."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from snakemake.exceptions import WorkflowError

from evaluation.checkpoints.locations import Merge, absent_folder
from evaluation.checkpoints.subjects import Subject
from evaluation.errors import EvaluationError
from evaluation.escaping import terminal_text
from evaluation.exit_codes import machine_fault, out_of_memory

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def or_stop(
    function: Callable[Arguments, Answer], *arguments: Arguments.args, **keywords: Arguments.kwargs
) -> Answer:
    """Call a function of the package; its errors, and the machine's, end the run as one sentence."""
    try:
        return function(*arguments, **keywords)
    except EvaluationError as error:
        raise WorkflowError(terminal_text(str(error))) from None
    except OSError as error:
        raise WorkflowError(machine_fault(error)) from None
    except MemoryError:
        raise WorkflowError(out_of_memory()) from None


def require_checkpoint(subject: Subject) -> None:
    """Stop before anything runs if a checkpoint that is to be scored is not there."""
    absent = absent_folder(subject.checkpoint)
    if absent is None:
        return
    plan = subject.plan
    if isinstance(subject.checkpoint, Merge):
        raise WorkflowError(
            f"stages.{plan.name}.merges.{subject.merge}: {absent}: no checkpoint there (no "
            "model_config.json or config.yaml); wait until it is saved, restore it, or take it out of "
            "`merges`"
        )
    key = f"stages.{plan.name}.{'bridge' if subject.role == 'bridge' else 'steps'}"
    what = (
        "correct it, or wait until training has saved it"
        if subject.role == "bridge"
        else f"correct `checkpoints`, take {subject.step} out of `steps`, or wait until it is saved"
    )
    raise WorkflowError(
        f"{key}: {subject.checkpoint}: no checkpoint there (no model_config.json, config.yaml or "
        f"config.json); {what}"
    )
