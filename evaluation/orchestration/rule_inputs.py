"""Lists the input files of each rule, and decides which rules have to run.

A rule runs if its output is missing or outdated. An outdated rule's record is put on the list of files
that Snakemake is forced to make. The inputs of all other rules are marked `ancient`, so that the age of
files decides nothing. With `--forcerun`, the rules that depend on the forced ones run as well.
"""

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from snakemake.io import ancient

from evaluation.checkpoints.subjects import (
    Subject,
    bridge_subject,
    stage_steps,
    step_subject,
)
from evaluation.dependencies.caches import CacheEntry, stage_entries, tier_entries, tokenizer_entry
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.places import Place, Target, checkpoint_places, place_of
from evaluation.dependencies.steps import COLLECT, STEPS, Step, record_of, sources
from evaluation.files import fingerprint
from evaluation.orchestration.internals import Internals
from evaluation.orchestration.stops import RunError, or_stop
from evaluation.settings.plan import StagePlan
from evaluation.settings.steps import step_of_results

CHECKED = Path(".snakemake") / "checked"

_BATCH = 32  # tasks of a provider per job


def needs_whole_stage(target: str, plan: StagePlan) -> bool:
    """Return whether a target needs the whole stage; a file of one checkpoint needs only itself."""
    if target in ("all", plan.name):
        return True
    folder = os.path.relpath(target, plan.results)
    return not folder.startswith("..") and not folder.startswith(("by_checkpoint", "bridge/"))


class RuleInputs:
    """Input files of every rule; none in a job, which makes only its own target."""

    def __init__(self, plans: Mapping[str, StagePlan], workflow: Any) -> None:
        self.plans = plans
        self.outdated = Outdated(plans)
        self.config = next(iter(plans.values())).config
        self.results = Path(self.config.results)
        self._internals = Internals(workflow)
        self.is_main = bool(self._internals.part("is_main_process"))
        run = f"{fingerprint(self.config.results)}-{uuid.uuid4().hex[:8]}"
        self._checked = CHECKED / (run if self.is_main else "job")

    def reported(self, name: str) -> str:
        """Return an output that every run lacks, so that a report, which writes it, is made at every call."""
        return str(self._checked / f"report_{name}")

    def checked(self, plan: StagePlan) -> str:
        """Return the output of the check that a stage's scoring jobs wait for."""
        return str(self._checked / plan.name)

    def entry(self, kind: str, setup: str, name: str = "") -> CacheEntry:
        """Return a cache entry by kind, folder of its tokenizer and length, and name; raise RunError.

        Args:
            setup: Name of the folder for one tokenizer and sequence length.
        """
        plans = [plan for plan in self.plans.values() if plan.cache.name == setup]
        for entry in (entry for plan in plans for entry in stage_entries(plan)):
            if entry.kind == kind and (entry.tier is None or entry.name == name):
                return entry
        raise RunError(f"no stage has a {kind} {name!r} in {setup}; see `suites` of the stages")

    def cache(self, entry: CacheEntry) -> list[str]:
        """Return the input files of a prefill rule: the tokenizer, unless the rule makes that."""
        before = [] if entry.tier is None else [tokenizer_entry(entry.plan).record]
        if self.is_main:
            or_stop(self.outdated.view.caches.check_files, entry)
        return self.read(before, entry.record, self._is_outdated(self._is_stale, entry))

    def provided(self, entries: Sequence[CacheEntry]) -> list[str]:
        """Return the input files of a job that prefills tasks of a provider, all in one cache folder."""
        stale = [entry for entry in entries if self._is_outdated(self._is_stale, entry)]
        before, made = tokenizer_entry(entries[0].plan).record, (stale or entries)[0].record
        return self.read([before], made, bool(stale))

    def provided_batches(self) -> Iterator[tuple[StagePlan, list[CacheEntry]]]:
        """Yield batches of providers' tasks: one job each, as a provider's libraries are slow to import."""
        seen: set[Path] = set()
        for plan in self.plans.values():
            for tier in plan.tiers:
                mine = [
                    e
                    for e in tier_entries(plan)
                    if e.is_provided and e.tier == tier and e.folder not in seen
                ]
                seen |= {entry.folder for entry in mine}
                yield from ((plan, mine[n : n + _BATCH]) for n in range(0, len(mine), _BATCH))

    def step(self, step: Step, target: Target) -> list[str]:
        """Return the input files of the rule that makes a step for a checkpoint."""
        if not self.is_main:
            return []
        place = place_of(target)
        read = or_stop(sources, step, place)
        is_outdated = or_stop(self.outdated, step.name, place)
        before = [record_of(*one) for one in read]
        before += [entry.record for entry in step.caches(place.plan)] if is_outdated else []
        return self.read(before, record_of(step, place), is_outdated, place.plans)

    def report(self, plan: StagePlan) -> list[str]:
        """Return the input files of a stage's report: the records of its checkpoints' results."""
        if not self.is_main:
            return []
        or_stop(stage_steps, plan)  # says what is there if it is no checkpoint
        places = or_stop(checkpoint_places, plan, self.plans)
        if plan.stage.bridge is not None:
            or_stop(bridge_subject, plan, self.plans)
        # Not `ancient`: a report runs in any case, and Snakemake would pass over it after a forced job.
        return [str(record_of(STEPS[COLLECT], place)) for place in places]

    def at(self, plan: StagePlan, folder: str) -> Subject:
        """Return the checkpoint whose results are in a folder below the stage's."""
        if folder == "bridge":
            return or_stop(bridge_subject, plan, self.plans)
        return or_stop(step_subject, plan, step_of_results(Path(folder)))

    def result_files(self, plan: StagePlan) -> list[str]:
        """Return the names of the files that steps write into a checkpoint's folder."""
        place = Place(plan.results, (plan,))
        outputs = (files for step in STEPS.values() for files in step.outputs(place).values())
        return [path.name for files in outputs for path in files]

    def result_file(self, plan: StagePlan, folder: str, file: str) -> list[str]:
        """Return the input files for a requested file in a checkpoint's folder below the stage's."""
        if not self.is_main:
            return []
        place = place_of(self.at(plan, folder))
        makers = [
            step
            for step in STEPS.values()
            if any(place.folder / file in files for files in step.outputs(place).values())
        ]
        step = makers[0] if makers else STEPS[COLLECT]
        is_outdated = or_stop(self.outdated, step.name, place)
        return self.read([record_of(step, place)], None, is_outdated, [plan])

    def _is_stale(self, entry: CacheEntry) -> bool:
        """Return whether an entry or its tokenizer is outdated; a missing one is not."""
        entries = entry, tokenizer_entry(entry.plan)
        return any(self.outdated.view.caches.state(entry) == "stale" for entry in entries)

    def _is_outdated(self, question: Callable[..., bool], *arguments: object) -> bool:
        return self.is_main and or_stop(question, *arguments)

    def read(
        self,
        before: Iterable[Path],
        made: Path | None,
        is_outdated: bool,
        plans: Iterable[StagePlan] = (),
    ) -> list[str]:
        """Return the input files of a rule; if it is outdated, force Snakemake to make its record.

        For a job downstream of a forced one, Snakemake checks only whether one of its inputs is made,
        not whether the job is forced itself. So an outdated job has no `ancient` inputs, and reads the
        outdated caches of `plans` as well: the jobs between need not run again. With `--forcerun` no
        input is `ancient`. A rule whose record exists and is current leaves out missing inputs, such as
        a removed cache: otherwise Snakemake would run it again when another job makes that cache.

        Args:
            made: The record that the rule makes; None for a rule without one.
            plans: Stages whose outdated caches an outdated rule waits for.
        """
        if not self.is_main:
            return []
        if is_outdated and made is not None:
            self._internals.force(str(made))
        files = [str(path) for path in before]
        if is_outdated:
            entries = (entry for plan in plans for entry in stage_entries(plan))
            stale = [str(entry.record) for entry in entries if or_stop(self._is_stale, entry)]
            return list(dict.fromkeys([*files, *stale]))
        if self._internals.part("dag_settings.forcerun"):
            return files
        is_made = made is not None and os.path.lexists(made)
        return [ancient(file) for file in files if not is_made or os.path.lexists(file)]
