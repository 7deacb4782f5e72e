"""Check that what a command reads of other steps is what the configuration asks for now.

A run of the workflow makes again what is outdated before anything reads it. A command by hand stops
with what to type. What is missing or has failed is another matter: others go on without it.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.checkpoints.subjects import (
    Subject,
    bridge_subject,
    candidate_subject,
    candidates_so_far,
)
from evaluation.dependencies.caches import check_current, stage_entries, tier_entries
from evaluation.dependencies.known_steps import with_known_steps
from evaluation.dependencies.outdated import Outdated, are_tables_late
from evaluation.dependencies.steps import COLLECT, TABLES
from evaluation.errors import ResultsError
from evaluation.records import read_record
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages

_ROLES = ("step", "merge", "bridge")


@dataclass
class CommandInputs:
    """Inputs of a command that was given the file `config`; each check raises ResultsError.

    Where scores are outdated and caches, too, it is the CacheError by which `score` would stop.

    Args:
        config: File of the configuration, for messages.
        plans: All stages by name.
    """

    config: Path
    plans: Mapping[str, StagePlan]
    outdated: Outdated = field(init=False)

    def __post_init__(self) -> None:
        self.outdated = Outdated(self.plans, as_made=True)

    def check_scores(self, subjects: Iterable[Subject]) -> None:
        """Check the scores of checkpoints.

        Args:
            subjects: Checkpoints of any stages.
        """
        late = list(filter(self.outdated.score, subjects))
        for plan in {subject.plan.name: subject.plan for subject in late}.values():
            self._check_caches(plan)
        self._refuse("the scores", "score", late)

    def _check_caches(self, plan: StagePlan) -> None:
        """Raises CacheError, as `score` would, where caches are outdated; missing ones explain nothing."""
        caches, entries = self.outdated.caches, stage_entries(plan)
        if any(caches.state(entry) == "stale" for entry in entries):
            for entry in entries:
                check_current(caches, entry)

    def check_documents(self, plan: StagePlan) -> None:
        """Check what answers and choices are graded by; raise CacheError if it is not prefilled.

        Args:
            plan: The stage.
        """
        for entry in tier_entries(plan):
            if entry.is_graded:
                check_current(self.outdated.caches, entry)

    def check_results(self, subjects: Sequence[Subject]) -> None:
        """Check the results of checkpoints, and the scores that they are made from.

        Args:
            subjects: Checkpoints of any stages.
        """
        late = list(filter(self.outdated.collect, subjects))
        self.check_scores(late)
        self._refuse("the results", "collect", late)

    def check_deltas(self, plan: StagePlan) -> None:
        """Check all deltas of a stage, and the results that they are made from.

        Args:
            plan: The stage.
        """
        steps = candidates_so_far(plan)
        self.check_results([candidate_subject(plan, one) for one in steps])
        if plan.stage.bridge is not None and read_record(plan.bridge_folder, COLLECT) is not None:
            self.check_results([bridge_subject(plan, self.plans)])
            late = [one for one in steps if self.outdated.deltas(plan, one)]
            self._refuse("the deltas", "deltas", [candidate_subject(plan, one) for one in late])

    def check_tables(self, plan: StagePlan) -> None:
        """Check a stage's tables, where there are some, and all that they are made from.

        Args:
            plan: The stage.
        """
        self.check_deltas(plan)
        if read_record(plan.results, TABLES) is not None and are_tables_late(plan):
            raise self._error(f"the tables of {plan.name}", f"tables --stage {plan.name}")

    def _refuse(self, what: str, command: str, late: Sequence[Subject]) -> None:
        """Raise an error on what is late: steps, merges or the bridge, as a command takes one of them."""
        if not late:
            return
        plan, first = late[0].plan, min(late, key=lambda one: _ROLES.index(one.role))
        names = [str(one.candidate) for one in late if one.role == first.role]
        which = "--bridge" if first.role == "bridge" else f"--{first.role} {' '.join(names)}"
        named = f"{first.role}s {', '.join(names)}" if len(names) > 1 else first.label
        raise self._error(
            f"{what} of {plan.name}, {named},", f"{command} --stage {plan.name} {which}"
        )

    def _error(self, what: str, command: str) -> ResultsError:
        name, _, arguments = command.partition(" ")
        config = shlex.quote(str(self.config))
        return ResultsError(
            f"{self.config}: {what} are damaged, or were made from other settings, data or checkpoints "
            f"than there are now; run `python -m evaluation {name} --config {config} {arguments}`"
        )


def check_run(config: Path) -> None:
    """Check the results of a run that a command names by its configuration; raise ResultsError.

    They may be looked at on a machine that has nothing else of the run, where this cannot be checked.

    Args:
        config: File of the run's configuration.
    """
    known = with_known_steps(load_config(config))
    needed = [Path(known.suites), *(Path(one.checkpoints) for one in known.stages.values())]
    if all(path.is_dir() for path in needed):
        plans = plan_stages(known)
        for plan in plans.values():
            subjects = [candidate_subject(plan, one) for one in candidates_so_far(plan)]
            CommandInputs(config, plans).check_results(subjects)
