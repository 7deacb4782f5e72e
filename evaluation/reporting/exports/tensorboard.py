"""Curves as TensorBoard's event files."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.errors import EvaluationError

SUFFIX = ".staged-evaluation"
"""How our files end, so that an export anew replaces them and no others."""


def event_writer() -> Callable[[Sequence[tuple[str, int, float]], Path], None]:
    """Writes tags, steps and values; raises EvaluationError where tensorboard is not installed."""
    return partial(_write, _writer())


def _write(writer_of: Any, points: Sequence[tuple[str, int, float]], output: Path) -> None:
    for old in output.glob(f"events.out.tfevents.*{SUFFIX}"):
        old.unlink()
    with writer_of(str(output), filename_suffix=SUFFIX) as writer:
        for tag, step, value in points:
            writer.add_scalar(tag, value, step)


def _writer() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # not ours
            from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as error:
        raise EvaluationError(
            f"the export needs a package that is not installed ({error.name}); run "
            "`pip install tensorboard`"
        ) from None
    return SummaryWriter
