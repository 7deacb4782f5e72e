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
    candidate_subject,
    stage_candidates,
)
from evaluation.dependencies.caches import CacheEntry, stage_entries, tier_entries, tokenizer_entry
from evaluation.dependencies.outdated import Outdated, are_figures_outdated
from evaluation.dependencies.steps import (
    COLLECT,
    COMPARISON,
    FIGURES,
    FRONT,
    SCORE,
    STEP_DELTAS,
    TABLES,
    stage_results,
)
from evaluation.fingerprints import fingerprint
from evaluation.orchestration.internals import Internals
from evaluation.orchestration.stops import RunError, or_stop
from evaluation.records import record_path
from evaluation.settings.candidates import candidate_of
from evaluation.settings.plan import StagePlan

CHECKED = Path(".snakemake") / "checked"

_BATCH = 32  # tasks of a provider per job


class RuleInputs:
    """Input files of every rule; none in a job, which makes only its own target."""

    def __init__(self, plans: Mapping[str, StagePlan], workflow: Any) -> None:
        self.plans = plans
        self.outdated = Outdated(plans)
        self.config = next(iter(plans.values())).config
        self.results = Path(self.config.results)
        self._all_tables = [record_path(plan.results, TABLES) for plan in plans.values()]
        self._internals = Internals(workflow)
        self.is_main = bool(workflow.is_main_process)
        run = f"{fingerprint(self.config.results)}-{uuid.uuid4().hex[:8]}"
        self._checked = CHECKED / (run if self.is_main else "job")

    def checked(self, plan: StagePlan) -> str:
        """Return the output of the check that a stage's scoring jobs wait for."""
        return str(self._checked / plan.name)

    def entry(self, kind: str, setup: str, name: str = "") -> CacheEntry:
        """Return a cache entry by its kind, folder and name.

        Args:
            kind: Kind of the entry, such as `slice` or `tokenizer`.
            setup: Name of the folder for one tokenizer and sequence length.
            name: Name of the entry; the tokenizer needs none.

        Returns:
            The entry of the first stage that has it.

        Raises:
            RunError: When no stage has it.
        """
        plans = [plan for plan in self.plans.values() if plan.cache.name == setup]
        for entry in (entry for plan in plans for entry in stage_entries(plan)):
            if entry.kind == kind and (entry.tier is None or entry.name == name):
                return entry
        raise RunError(f"no stage has a {kind} {name!r} in {setup}; see `suites` of the stages")

    def cache(self, entry: CacheEntry) -> list[str]:
        """Return the input files of a prefill rule: the tokenizer, unless the rule makes that.

        Args:
            entry: The entry that the rule makes.
        """
        before = [] if entry.tier is None else [tokenizer_entry(entry.plan).record]
        if self.is_main:
            or_stop(self.outdated.caches.check_files, entry)
        return self.read(before, entry.record, self._is_outdated(self._is_stale, entry))

    def provided(self, entries: Sequence[CacheEntry]) -> list[str]:
        """Return the input files of a job that prefills many tasks of a provider.

        Args:
            entries: The entries that the job makes, all in one cache folder.
        """
        stale = [entry for entry in entries if self._is_outdated(self._is_stale, entry)]
        before, made = tokenizer_entry(entries[0].plan).record, (stale or entries)[0].record
        return self.read([before], made, bool(stale))

    def provided_batches(self) -> Iterator[tuple[StagePlan, list[CacheEntry]]]:
        """Yield batches of providers' tasks: one job each, as a provider's libraries are slow to import.

        Yields:
            A stage and entries of one of its tiers; each entry is in one batch only.
        """
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

    def collect(self, plan: StagePlan, folder: str) -> list[str]:
        """Return the input files of the step that makes a checkpoint's results from stored scores.

        Args:
            folder: Folder of the checkpoint's results, below the stage's.
        """
        subject = self._subject(plan, folder)
        is_outdated = self._is_outdated(self.outdated.collect, subject)
        before = [record_path(subject.folder, SCORE)]
        before += (
            [entry.record for entry in tier_entries(plan) if entry.is_graded] if is_outdated else []
        )
        return self.read(before, record_path(subject.folder, COLLECT), is_outdated, [plan])

    def deltas(self, plan: StagePlan, folder: str) -> list[str]:
        """Return the input files of the comparison of a step or merge with the bridge.

        Args:
            folder: Name of the folder of the step's or merge's results.
        """
        subject = self._subject(plan, folder)
        before = [record_path(subject.folder, COLLECT), record_path(plan.bridge_folder, COLLECT)]
        is_outdated = self._is_outdated(self.outdated.deltas, plan, subject.candidate)
        return self.read(before, record_path(subject.folder, STEP_DELTAS), is_outdated, [plan])

    def result_file(self, plan: StagePlan, folder: str, is_deltas: bool) -> list[str]:
        """Return the input files for one requested result file of a checkpoint.

        Args:
            folder: Folder of the checkpoint's results, below the stage's.
            is_deltas: Whether the file belongs to the comparison with the bridge.
        """
        subject = self._subject(plan, folder)
        if is_deltas and subject.candidate is not None:
            is_outdated = self._is_outdated(self.outdated.deltas, plan, subject.candidate)
            return self.read([record_path(subject.folder, STEP_DELTAS)], None, is_outdated, [plan])
        is_outdated = self._is_outdated(self.outdated.collect, subject)
        return self.read([record_path(subject.folder, COLLECT)], None, is_outdated, [plan])

    def tables(self, plan: StagePlan) -> list[str]:
        """Return the input files of the stage's tables and report."""
        if not self.is_main:
            return []
        steps = or_stop(stage_candidates, plan)
        if plan.stage.bridge is not None:
            or_stop(bridge_subject, plan, self.plans)
        before = [record_path(*place) for place in stage_results(plan, steps)]
        is_outdated = self.outdated.tables(plan)
        if is_outdated:  # the report shows texts of flips
            before += [entry.record for entry in stage_entries(plan)]
        return self.read(before, record_path(plan.results, TABLES), is_outdated)

    def figures(self, plan: StagePlan) -> list[str]:
        """Return the input files of the stage's figures."""
        is_outdated = self._is_outdated(
            lambda: self.outdated.tables(plan) or are_figures_outdated(plan)
        )
        tables, made = (record_path(plan.results, step) for step in (TABLES, FIGURES))
        return self.read([tables], made, is_outdated, [plan])

    def comparison(self) -> list[str]:
        """Return the input files of the page that compares runs, without those of the other runs."""
        made = record_path(self.results, COMPARISON)
        is_outdated = self._is_outdated(self.outdated.comparison)
        return self.read(self._all_tables, made, is_outdated, self.plans.values())

    def front(self) -> list[str]:
        """Return the input files of the front page of all stages."""
        comparison = [record_path(self.results, COMPARISON)] if self.config.runs else []
        made, is_outdated = record_path(self.results, FRONT), self._is_outdated(self.outdated.front)
        return self.read([*self._all_tables, *comparison], made, is_outdated, self.plans.values())

    def _is_stale(self, entry: CacheEntry) -> bool:
        """Return whether an entry or its tokenizer is outdated; a missing one is not."""
        entries = entry, tokenizer_entry(entry.plan)
        return any(self.outdated.caches.state(one) == "stale" for one in entries)

    def _subject(self, plan: StagePlan, folder: str) -> Subject:
        if folder == "bridge":
            return or_stop(bridge_subject, plan, self.plans)
        return or_stop(candidate_subject, plan, candidate_of(folder.removeprefix("by_checkpoint/")))

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
            before: Records of the steps whose results the rule reads.
            made: The record that the rule makes; None for a rule without one.
            is_outdated: Whether the rule has to run.
            plans: Stages whose outdated caches an outdated rule waits for.

        Returns:
            Input files of the rule; none in a job of the run.
        """
        or_stop(self._internals.decide_by_records)  # possible only in input functions
        if not self.is_main:
            return []
        if is_outdated and made is not None:
            self._internals.force(str(made))
        files = [str(path) for path in before]
        if is_outdated:
            entries = (entry for plan in plans for entry in stage_entries(plan))
            stale = [str(entry.record) for entry in entries if or_stop(self._is_stale, entry)]
            return list(dict.fromkeys([*files, *stale]))
        if self._internals.is_forced_by_hand:
            return files
        is_made = made is not None and os.path.lexists(made)
        return [ancient(file) for file in files if not is_made or os.path.lexists(file)]
