"""Make a step in a place: check what it reads, call its function, and record what it made from what."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, cast

from evaluation.dependencies.places import Place, Target, place_of
from evaluation.dependencies.steps import STEPS, Step, key_of, records_of, sources
from evaluation.errors import ResultsError
from evaluation.records import Record, read_record, write_record


class Made(NamedTuple):
    """What a step's function made in a place."""

    files: Iterable[Path] = ()
    error: str | None = None
    """Sentence of a step that failed permanently; None if it is done."""
    about: Mapping[str, Any] = {}
    """JSON values for those who read its record."""


def make(name: str, target: Target) -> Record:
    """Make a step for a checkpoint, a stage or a run, and record it.

    A step whose inputs failed is not made: its record has their error.

    Raises:
        ResultsError: Something that it reads is not there yet.
        EvaluationError: A cache, a file or this machine is at fault; a later run may succeed.
    """
    step, place = STEPS[name], place_of(target)
    read = list(sources(step, place))
    records = records_of(read)
    key, inputs = key_of(step, place, records), step.inputs(place)
    error = _error_of(read, records, place)
    made = Made(error=error) if error else _function_of(step)(place)
    files = list(made.files)
    if made.error:
        _remove(step, place, files)
    about = {**inputs, **made.about}
    return write_record(place.folder, name, key, files, error=made.error, about=about)


def _function_of(step: Step) -> Callable[[Place], Made]:
    """Return the function that makes a step; its room, which may need torch, is imported only now."""
    return cast("Callable[[Place], Made]", resolve_name(step.make))


def _error_of(
    read: Sequence[tuple[Step, Place]], records: Sequence[Record | None], place: Place
) -> str | None:
    """Return the first error of what a step reads; raise ResultsError for what is not there."""
    for (step, where), record in zip(read, records, strict=True):
        if record is None:
            raise ResultsError(
                f"{where.folder}: no {step.noun} yet; run `snakemake {place.plan.name}`"
            )
    for (step, where), record in zip(read, records, strict=True):
        if record and record.error:
            other = f"the {where.label} has no {step.noun}: "
            return other * (where.folder != place.folder) + record.error
    return None


def _remove(step: Step, place: Place, paths: Sequence[Path]) -> None:
    """Remove the files that a step made before in its folder, and did not make now."""
    record = read_record(place.folder, step.name)
    before = [
        Path(os.path.normpath(place.folder / name)) for name in (record.files if record else ())
    ]
    listed = [path for files in step.outputs(place).values() for path in files]
    for path in {*before, *listed}.difference(paths):
        if path.is_relative_to(place.folder):
            path.unlink(missing_ok=True)
