"""A small run of two stages whose records and results are as a run of the workflow leaves them."""

from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from evaluation.checkpoints.state import recorded_state
from evaluation.checkpoints.subjects import Subject, bridge_subject, step_subject
from evaluation.dependencies import steps
from evaluation.dependencies.caches import stage_entries, tier_entries
from evaluation.dependencies.making import Made
from evaluation.dependencies.places import place_of
from evaluation.dependencies.steps import COLLECT, SCORE
from evaluation.prefill.definitions import tokenizer_definition
from evaluation.records import write_record
from evaluation.reporting.report import report_stage
from tests.bridge.folders import make_plans, write_side
from tests.dependencies.leaving import key_now

STEPS = (10, 20)


def write_evaluated(folder: Path, tiers: tuple[str, ...] = ("slices", "tasks"), **how: Any) -> Path:
    """The configuration of two stages with records of all that a run leaves of them.

    `how` has options of each `write_side`.
    """
    plans = make_plans(folder, tiers=tiers, steps=STEPS)
    first, second = plans.values()
    subjects = [step_subject(second, step) for step in STEPS]
    for subject in (step_subject(first, 100), bridge_subject(second, plans), *subjects):
        evaluated(subject, **how)
    for plan in plans.values():
        assert report_stage(plan, plans) == []
    path = folder / "config.yaml"
    content = first.config.model_dump(mode="json", exclude_defaults=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def evaluated(subject: Subject, **how: Any) -> None:
    plan, made = subject.plan, {"definition": tokenizer_definition(subject.plan)}
    subject.checkpoint.mkdir(parents=True, exist_ok=True)
    if not (subject.checkpoint / "model_config.json").exists():  # the bridge is another's step
        (subject.checkpoint / "model_config.json").write_text("{}")
    write_side(subject.folder, plan, step=subject.step, seed=subject.step or 0, **how)
    about: dict[str, Any] = {"caches": {entry.place: made for entry in stage_entries(plan)}}
    about |= recorded_state(subject.checkpoint)
    leave_as(SCORE, subject, Made(about=about))
    graded = {"documents": {entry.place: made for entry in tier_entries(plan) if entry.is_graded}}
    files = list(chain(*steps.STEPS[COLLECT].outputs(place_of(subject)).values()))
    files += subject.folder.glob("generation/*/*")
    leave_as(COLLECT, subject, Made(files, about=graded))


def leave_as(name: str, subject: Subject, made: Made) -> None:
    """A record of caches that are not there: with what a job would have read."""
    key = key_now(name, subject)
    write_record(subject.folder, name, key, made.files, about=made.about)
