"""The one table of what the workflow makes from what: its steps between caches and pages.

    step        in the folder of     reads                             writes
    score       a checkpoint         caches, the checkpoint            scores in the store
    collect     a checkpoint         its scores, documents             tier files
    deltas      a step               results of it and of the bridge   bridge_deltas.json
    tables      a stage              results and deltas, also those    summary, deltas, report
                                     of the bridge's stage, if any
    figures     a stage              its tables                        SVG files
    comparison  the results          all stages' tables, other runs    comparison.{csv,json,html}
    front       the results          all of these                      report.html

Rules, `status`, checks of commands by hand, the watcher and the end of a run walk this table. A new step
is an entry, a function that `make` names, and its name among the parents of the steps that read it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.dependencies import inputs, keys
from evaluation.dependencies.caches import CacheEntry, graded_entries, stage_entries
from evaluation.dependencies.other_runs import TABLES as TABLES
from evaluation.dependencies.places import (
    Place,
    Plans,
    Scope,
    bridge_places,
    places_in,
    previous_places,
)
from evaluation.dependencies.view import View
from evaluation.files import fingerprint
from evaluation.records import Record, read_record, record_path
from evaluation.results.comparison_file import COMPARISON_FILES
from evaluation.results.deltas_file import DELTAS
from evaluation.results.stage_files import FRONT_FILES, stage_outputs
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

SCORE = "score"
COLLECT = "collect"
STEP_DELTAS = "deltas"
FIGURES = "figures"
COMPARISON = "comparison"
FRONT = "front"

Files = Mapping[str, Sequence[Path]]


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is made in each place of a scope."""

    name: str
    scope: Scope
    noun: str
    """What it makes, in messages."""
    parents: tuple[str, ...] = ()
    """Steps whose outputs it reads: in the same place, at a comparison also the bridge's, in a stage
    those of its checkpoints, in a run those of its stages."""
    optional: Callable[[Place, Plans], Sequence[Place]] = lambda place, plans: ()
    """Returns checkpoints of other stages whose results it reads where there are some. A run makes these
    first if it makes them anyway, but never because of this step; `parts` has their state."""
    parts: Callable[[Place, keys.Records], Mapping[str, Any]]
    """Returns the settings that its outputs depend on, for its key."""
    outputs: Callable[[Place], Files]
    """Returns its files by what `status` calls them."""
    make: str
    """`module:function` that takes the place and returns what it made (`making.Made`)."""
    help: str = ""
    """Line in the list of commands; none for a step whose command is written by hand."""
    command: str = ""
    """Command that makes it, if it is called otherwise than the step."""
    is_partial: bool = False
    """Whether it is made from those inputs that there are, and shows failures of the others."""
    is_wanted: Callable[[StagePlan], bool] = lambda plan: True
    unwanted: str = ""
    """What to configure where it is not wanted."""
    caches: Callable[[StagePlan], list[CacheEntry]] = lambda plan: []
    """Returns the caches that it reads."""
    takes_long: Callable[[StagePlan], bool] = lambda plan: False
    """Whether it is a job of the cluster, with the resources of `verification`."""
    inputs: Callable[[Place], Mapping[str, Any]] = lambda place: {}
    """Returns the state of other inputs (caches, the checkpoint) for the record."""
    agrees: Callable[[Record, keys.Records, Place, View], bool] = lambda *_: True
    """Returns whether these inputs are still as a record has them."""

    @property
    def words(self) -> str:
        """Its command on the command line."""
        return self.command or self.name

    @property
    def of_checkpoint(self) -> bool:
        """Whether it is made for single checkpoints."""
        return self.scope in ("checkpoint", "comparison")


def _tier_files(place: Place) -> Files:
    """Return each tier's summary and, except for external programs, its files of items and units."""
    first = -1 if place.plan.stage.command else 0
    return {
        tier: [place.folder / name for name in reversed(TIERS[tier].files[first:])]
        for tier in place.plan.tiers
    }


def _in_results(names: Callable[[StagePlan], Sequence[str]]) -> Callable[[Place], Files]:
    return lambda place: {name: [place.folder / name] for name in names(place.plan)}


_TABLE = (
    Step(
        name=SCORE,
        scope="checkpoint",
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
        scope="checkpoint",
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
    Step(
        name=STEP_DELTAS,
        scope="comparison",
        noun="deltas",
        help="compare steps with their bridge",
        is_wanted=lambda plan: plan.stage.bridge is not None,
        unwanted="stages.{stage}.bridge: none is configured, so there are no deltas; name a `stage` or a "
        "`path` there",
        parents=(COLLECT,),
        parts=keys.deltas_parts,
        outputs=lambda place: {STEP_DELTAS: [place.folder / DELTAS]},
        make="evaluation.bridge.write:make_deltas",
    ),
    Step(
        name=TABLES,
        scope="stage",
        noun="tables",
        help="write a stage's tables, recommendation and report",
        parents=(COLLECT, STEP_DELTAS),
        optional=previous_places,  # the noise of the bridge
        parts=keys.tables_parts,
        is_partial=True,
        caches=stage_entries,  # the report shows texts of flips
        outputs=_in_results(stage_outputs),
        make="evaluation.reporting.steps:make_tables",
    ),
    Step(
        name=FIGURES,
        scope="stage",
        noun="figures",
        help="write a stage's curves and forest plots as SVG files",
        parents=(TABLES,),
        parts=keys.view_parts,
        outputs=_in_results(
            lambda plan: [str(path.relative_to(plan.results)) for path in plan.figures.values()]
        ),
        make="evaluation.reporting.steps:make_figures",
    ),
    Step(
        name=COMPARISON,
        scope="run",
        noun="tables of other runs",
        help="compare this run with those under `runs` in the configuration",
        parents=(TABLES,),
        parts=keys.comparison_parts,
        is_partial=True,
        is_wanted=lambda plan: bool(plan.config.runs),
        unwanted="{config}: has no `runs`; add some, or use `compare A B`",
        outputs=_in_results(lambda plan: COMPARISON_FILES),
        make="evaluation.reporting.steps:make_comparison",
    ),
    Step(
        name=FRONT,
        scope="run",
        noun="front page",
        help="write the report's first page, over all stages",
        command="front-page",
        parents=(TABLES, COMPARISON),
        parts=keys.view_parts,
        is_partial=True,
        outputs=_in_results(lambda plan: FRONT_FILES),
        make="evaluation.reporting.steps:make_front_page",
    ),
)

STEPS: dict[str, Step] = {step.name: step for step in _TABLE}
"""All steps by name; parents come first."""


def steps_of(*scopes: Scope) -> list[Step]:
    """Return the steps with some scopes."""
    return [step for step in STEPS.values() if step.scope in scopes]


def steps_at(place: Place) -> list[Step]:
    """Return the steps that are made in the place of a checkpoint."""
    steps = steps_of("checkpoint") if place.is_bridge else steps_of("checkpoint", "comparison")
    return [step for step in steps if step.is_wanted(place.plan)]


def sources(step: Step, place: Place, plans: Plans | None = None) -> Iterator[tuple[Step, Place]]:
    """Yield what a step reads at a place: earlier steps, and where."""
    plans = plans or {plan.name: plan for plan in place.plans}
    for parent in (STEPS[name] for name in step.parents):
        if not parent.is_wanted(place.plan):
            continue
        if parent.scope == step.scope:
            yield parent, place
        elif step.scope == "comparison":
            yield parent, place
            yield from ((parent, bridge) for bridge in bridge_places(place.plan, plans))
        else:
            for plan in place.plans:
                yield from ((parent, place) for place in places_in(parent.scope, plan, plans))


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
