"""Check that a command's inputs from other steps are what the configuration asks for now.

A run of the workflow makes outdated inputs again before anything reads them. A command by hand stops
and shows what to type. Missing or failed inputs are not errors here: commands continue without them.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.dependencies.caches import check_current
from evaluation.dependencies.known_steps import with_known_steps
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.places import Place, Target, place_of, step_places
from evaluation.dependencies.steps import COLLECT, STEPS, Step, sources
from evaluation.errors import ResultsError
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages


@dataclass
class CommandInputs:
    """Inputs of a command that was given the file `config`; each check raises ResultsError."""

    config: Path
    plans: Mapping[str, StagePlan]
    outdated: Outdated = field(init=False)

    def __post_init__(self) -> None:
        self.outdated = Outdated(self.plans, as_made=True)

    def check_inputs(self, name: str, targets: Iterable[Target]) -> None:
        """Check all that a step reads for some checkpoints, and its caches."""
        places, step = list(map(place_of, targets)), STEPS[name]
        self._check([read for place in places for read in sources(step, place)])
        for plan in {place.plan.name: place.plan for place in places}.values():
            for entry in step.caches(plan):
                check_current(self.outdated.view.caches, entry)

    def check(self, name: str, targets: Iterable[Target]) -> None:
        """Check what a step made for some checkpoints, and all that it was made from."""
        self._check([(STEPS[name], place_of(target)) for target in targets])

    def _check(self, read: Sequence[tuple[Step, Place]]) -> None:
        """Raise an error on the outdated outputs of the first step that has some."""
        needed = {(step.name, place.folder): place for step, place in self._with_ancestors(read)}
        for step in STEPS.values():
            places = [place for (name, _), place in needed.items() if name == step.name]
            if outdated := [place for place in places if self.outdated(step.name, place)]:
                raise self._error(step, outdated)

    def _with_ancestors(self, read: Iterable[tuple[Step, Place]]) -> list[tuple[Step, Place]]:
        steps: dict[tuple[str, Path], tuple[Step, Place]] = {}
        waiting = list(read)
        for step, place in waiting:
            if (step.name, place.folder) not in steps:
                steps[step.name, place.folder] = step, place
                waiting += sources(step, place)
        return list(steps.values())

    def _error(self, step: Step, places: Sequence[Place]) -> ResultsError:
        """Return the error on outputs of one stage: a command takes steps or the bridge."""
        plan = places[0].plan
        mine = [place for place in places if place.plan.name == plan.name]
        steps = [place for place in mine if place.step is not None]
        names = [str(place.step) for place in steps]
        options = f" --step {' '.join(names)}" if steps else " --bridge"
        first = (steps or mine)[0]
        named = f", steps {', '.join(names)}," if len(names) > 1 else f", {first.label},"
        what = f"the {step.noun} of {plan.name}{named}"
        config = shlex.quote(str(self.config))
        command = f"{step.name} --config {config} --stage {plan.name}{options}"
        return ResultsError(
            f"{self.config}: {what} are damaged, or were made from other settings, data or checkpoints "
            f"than there are now; run `python -m evaluation {command}`"
        )


def check_run(config: Path) -> None:
    """Check the results of a run that a command names by its configuration; raise ResultsError.

    On a machine without the run's suites or checkpoints, nothing can be checked.
    """
    listed = with_known_steps(load_config(config))
    needed = [Path(listed.suites), *(Path(stage.checkpoints) for stage in listed.stages.values())]
    if all(path.is_dir() for path in needed):
        plans = plan_stages(listed)
        inputs = CommandInputs(config, plans)
        for plan in plans.values():
            inputs.check(COLLECT, step_places(plan))
