"""Leaves records as jobs do, without the work."""

from evaluation.dependencies.making import Made
from evaluation.dependencies.places import Target, place_of
from evaluation.dependencies.steps import STEPS, key_of, records_of, sources
from evaluation.records import Record, write_record


def leave(name: str, target: Target, made: Made) -> Record:
    """The record that making a step would leave now, had its function made this."""
    step, place = STEPS[name], place_of(target)
    about = {**step.inputs(place), **made.about}
    return write_record(
        place.folder, name, key_now(name, target), made.files, error=made.error, about=about
    )


def key_now(name: str, target: Target) -> str:
    step, place = STEPS[name], place_of(target)
    return key_of(step, place, records_of(list(sources(step, place))))
