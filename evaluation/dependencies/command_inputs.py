"""Check that a command's inputs from other steps are what the configuration asks for now.

A run of the workflow makes outdated inputs again before anything reads them. A command by hand stops
and shows what to type. Missing or failed inputs are not errors here: commands continue without them.
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
from evaluation.dependencies.outdated import Outdated, are_tables_outdated
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

    If both scores and caches are outdated, the checks raise the same CacheError as `score`.

    Args:
        config: File of the configuration, for messages.
    """

    config: Path
    plans: Mapping[str, StagePlan]
    outdated: Outdated = field(init=False)

    def __post_init__(self) -> None:
        self.outdated = Outdated(self.plans, as_made=True)

    def check_scores(self, subjects: Iterable[Subject]) -> None:
        """Check the scores of checkpoints."""
        outdated = list(filter(self.outdated.score, subjects))
        for plan in {subject.plan.name: subject.plan for subject in outdated}.values():
            self._check_caches(plan)
        self._refuse("the scores", "score", outdated)

    def _check_caches(self, plan: StagePlan) -> None:
        """Raise CacheError, like `score`, if caches are outdated (missing ones do not count)."""
        caches, entries = self.outdated.caches, stage_entries(plan)
        if any(caches.state(entry) == "stale" for entry in entries):
            for entry in entries:
                check_current(caches, entry)

    def check_documents(self, plan: StagePlan) -> None:
        """Check the documents for grading answers and choices; raise CacheError if not prefilled."""
        for entry in tier_entries(plan):
            if entry.is_graded:
                check_current(self.outdated.caches, entry)

    def check_results(self, subjects: Sequence[Subject]) -> None:
        """Check the results of checkpoints, and the scores that they are made from."""
        outdated = list(filter(self.outdated.collect, subjects))
        self.check_scores(outdated)
        self._refuse("the results", "collect", outdated)

    def check_deltas(self, plan: StagePlan) -> None:
        """Check all deltas of a stage, and the results that they are made from."""
        steps = candidates_so_far(plan)
        self.check_results([candidate_subject(plan, one) for one in steps])
        if plan.stage.bridge is not None and read_record(plan.bridge_folder, COLLECT) is not None:
            self.check_results([bridge_subject(plan, self.plans)])
            outdated = [one for one in steps if self.outdated.deltas(plan, one)]
            self._refuse("the deltas", "deltas", [candidate_subject(plan, o) for o in outdated])

    def check_tables(self, plan: StagePlan) -> None:
        """Check a stage's tables, if they exist, and everything that they are made from."""
        self.check_deltas(plan)
        if read_record(plan.results, TABLES) is not None and are_tables_outdated(plan):
            raise self._error(f"the tables of {plan.name}", f"tables --stage {plan.name}")

    def _refuse(self, what: str, command: str, outdated: Sequence[Subject]) -> None:
        """Raise an error on outdated steps, merges or the bridge: a command takes one of these kinds."""
        if not outdated:
            return
        plan, first = outdated[0].plan, min(outdated, key=lambda one: _ROLES.index(one.role))
        names = [str(one.candidate) for one in outdated if one.role == first.role]
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

    On a machine without the run's suites or checkpoints, nothing can be checked.
    """
    listed = with_known_steps(load_config(config))
    needed = [Path(listed.suites), *(Path(one.checkpoints) for one in listed.stages.values())]
    if all(path.is_dir() for path in needed):
        plans = plan_stages(listed)
        for plan in plans.values():
            subjects = [candidate_subject(plan, one) for one in candidates_so_far(plan)]
            CommandInputs(config, plans).check_results(subjects)
