"""The one table of what the workflow makes from what: its steps between caches and reports.

    step        in the folder of     reads                             writes
    score       a checkpoint         caches, the checkpoint            scores in the store
    collect     a checkpoint         its scores, documents             tier files

What shows results is made from them at every call (`reporting.report`), so it is no step. Rules, `status`,
checks of commands by hand, the watcher and the end of a run walk this table. A new step is an entry, a
function that `make` names, and its name among the parents of the steps that read it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.dependencies import inputs, keys
from evaluation.dependencies.caches import CacheEntry, graded_entries, stage_entries
from evaluation.dependencies.places import Place
from evaluation.dependencies.view import View
from evaluation.files import fingerprint
from evaluation.records import Record, read_record, record_path
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

SCORE = "score"
COLLECT = "collect"

Files = Mapping[str, Sequence[Path]]


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is made for each checkpoint, bridges too."""

    name: str
    noun: str
    """What it makes, in messages."""
    parents: tuple[str, ...] = ()
    """Steps whose outputs it reads, in the same place."""
    parts: Callable[[Place, keys.Records], Mapping[str, Any]]
    """Returns the settings that its outputs depend on, for its key."""
    outputs: Callable[[Place], Files]
    """Returns its files by what `status` calls them."""
    make: str
    """`module:function` that takes the place and returns what it made (`making.Made`)."""
    help: str = ""
    """Line in the list of commands; none for a step whose command is written by hand."""
    caches: Callable[[StagePlan], list[CacheEntry]] = lambda plan: []
    """Returns the caches that it reads."""
    takes_long: Callable[[StagePlan], bool] = lambda plan: False
    """Whether it is a job of the cluster, with the resources of `verification`."""
    inputs: Callable[[Place], Mapping[str, Any]] = lambda place: {}
    """Returns the state of other inputs (caches, the checkpoint) for the record."""
    agrees: Callable[[Record, keys.Records, Place, View], bool] = lambda *_: True
    """Returns whether these inputs are still as a record has them."""


def _tier_files(place: Place) -> Files:
    """Return each tier's summary and, except for external programs, its files of items and units."""
    first = -1 if place.plan.stage.command else 0
    return {
        tier: [place.folder / name for name in reversed(TIERS[tier].files[first:])]
        for tier in place.plan.tiers
    }


_TABLE = (
    Step(
        name=SCORE,
        noun="scores",
        parts=keys.score_parts,
        caches=stage_entries,
        inputs=inputs.score_inputs,
        agrees=inputs.are_scores_of,
        outputs=lambda place: {},
        make="evaluation.scoring.job:score",
    ),
    Step(
        name=COLLECT,
        noun="results",
        help="write a scored checkpoint's tier files from its stored scores",
        parents=(SCORE,),
        parts=keys.collect_parts,
        caches=graded_entries,
        takes_long=lambda plan: bool(plan.suite.generation_tasks),
        inputs=inputs.result_inputs,
        agrees=inputs.are_results_of,
        outputs=_tier_files,
        make="evaluation.grading.collect:collect",
    ),
)

STEPS: dict[str, Step] = {step.name: step for step in _TABLE}
"""All steps by name; parents come first."""


def sources(step: Step, place: Place) -> Iterator[tuple[Step, Place]]:
    """Yield what a step reads at a place: earlier steps, and where."""
    yield from ((STEPS[name], place) for name in step.parents)


def records_of(read: Sequence[tuple[Step, Place]]) -> list[Record | None]:
    """Return the records of what a step reads."""
    return [read_record(place.folder, step.name) for step, place in read]


def key_of(step: Step, place: Place, records: keys.Records) -> str:
    """Return the fingerprint of everything that a step's outputs in a place depend on."""
    made_from = [record and record.identity for record in records]
    parents = {"made_from": made_from} if step.parents else {}
    return fingerprint({**step.parts(place, records), **parents})


def record_of(step: Step, place: Place) -> Path:
    """Return the path of the record that a step writes in a place."""
    return record_path(place.folder, step.name)
