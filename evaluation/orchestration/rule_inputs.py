"""What the rules of the workflow read and write, and which of them have to run.

A rule runs if its output is missing, or if it is outdated: then its record is put on the list of
files that Snakemake is forced to make. All that a rule reads is `ancient` where it is not outdated,
so that the age of files decides nothing. Where rules are forced by hand, what is behind them runs.
"""

import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError
from snakemake.io import ancient

from evaluation.checkpoints.subjects import (
    Subject,
    bridge_subject,
    candidate_subject,
    candidates_so_far,
    stage_candidates,
    stage_steps,
    stage_subjects,
    step_subject,
)
from evaluation.dependencies.caches import (
    CacheEntry,
    check_current,
    graded_entries,
    stage_entries,
    tokenizer_entry,
)
from evaluation.dependencies.estimates import estimate_answers
from evaluation.dependencies.known_steps import is_retained
from evaluation.dependencies.outdated import Outdated
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
from evaluation.errors import CacheError, EvaluationError
from evaluation.fingerprints import fingerprint
from evaluation.orchestration.internals import decide_by_records, force, is_forced_by_hand
from evaluation.orchestration.stops import or_stop, require_checkpoint
from evaluation.prefill.entries import read_meta
from evaluation.records import record_path
from evaluation.settings.candidates import FOLDER, candidate_of
from evaluation.settings.plan import StagePlan

CHECKED = Path(".snakemake") / "checked"

NOTHING = "(?!)"
"""A pattern that matches no name."""


class RuleInputs:
    """Input files of every rule; nothing but the target itself in a job of the run.

    Args:
        plans: All stages by name.
        workflow: Snakemake's workflow.
    """

    def __init__(self, plans: Mapping[str, StagePlan], workflow: Any) -> None:
        self.plans = plans
        self.outdated = Outdated(plans)
        self.config = next(iter(plans.values())).config
        self.results = Path(self.config.results)
        self._workflow = workflow
        self.is_main = bool(workflow.is_main_process)
        run = f"{fingerprint(self.config.results)}-{uuid.uuid4().hex[:8]}"
        self._checked = CHECKED / (run if self.is_main else "job")

    def checked(self, plan: StagePlan) -> str:
        """Return the output of the check before a stage's scoring jobs, which wait for it.

        Args:
            plan: The stage.

        Returns:
            A file for this run alone.
        """
        return str(self._checked / plan.name)

    def require(self, targets: Sequence[str]) -> list[str]:
        """Stop before anything is planned if a checkpoint that is to be scored is not there.

        Args:
            targets: Targets of the run; none means `all`.

        Returns:
            What answers will take, in a line for each stage that generates some.
        """
        lines = []
        for plan in self.plans.values():
            if any(_asks_for(target, plan) for target in targets or ["all"]):
                subjects = or_stop(stage_subjects, plan, self.plans)
                self.outdated.look_at(subjects)
                late = [subject for subject in subjects if self.outdated.score(subject)]
                for subject in late:
                    require_checkpoint(subject)
                if plan.suite.generation_tasks:
                    estimate = estimate_answers(plan, late, partial(self._meta, plan))
                    lines.append(f"answers: {estimate}")
        return lines

    def _meta(self, plan: StagePlan, folder: Path) -> Mapping[str, Any] | None:
        try:
            check_current(self.outdated.caches, CacheEntry(plan, "tier5", folder.name, folder))
            return read_meta(folder)
        except CacheError:  # prefill makes it first
            return None

    def entry(self, kind: str, setup: str, name: str = "") -> CacheEntry:
        """Return the entry of a cache folder.

        Args:
            kind: Kind of the entry, such as `slice` or `tokenizer`.
            setup: Name of the folder for one tokenizer and sequence length.
            name: Name of the entry; the tokenizer needs none.

        Returns:
            The entry of the first stage that has it.

        Raises:
            WorkflowError: When no stage has it.
        """
        for plan in self.plans.values():
            if plan.cache.name == setup:
                for entry in stage_entries(plan):
                    if entry.kind == kind and (entry.tier is None or entry.name == name):
                        return entry
        raise WorkflowError(
            f"no stage has a {kind} {name!r} in {setup}; see `suites` of the stages"
        )

    def cache(self, entry: CacheEntry) -> list[str]:
        """Return what a rule of prefill reads: the tokenizer comes first.

        Args:
            entry: The entry that the rule makes.

        Returns:
            Input files of the rule.
        """
        before = [] if entry.tier is None else [tokenizer_entry(entry.plan).record]
        return self._read(before, entry.record, self._is_late(self.outdated.cache, entry), [])

    def provided(self, entries: Sequence[CacheEntry]) -> list[str]:
        """Return what a job of many tasks of a provider reads.

        Args:
            entries: The entries that the job makes, of one cache folder.

        Returns:
            Input files of the rule.
        """
        late = [entry for entry in entries if self._is_late(self.outdated.cache, entry)]
        before, made = tokenizer_entry(entries[0].plan).record, (late or entries)[0].record
        return self._read([before], made, bool(late), [])

    def candidates_to_score(self, plan: StagePlan) -> str:
        """Return a pattern of the folders of steps and merges that may be scored.

        What is deleted is no rule's to score: Snakemake removes what a rule is to make, be it forced
        by hand, before it can fail.

        Args:
            plan: The stage.

        Returns:
            A regular expression of folders' names.
        """
        subjects = (candidate_subject(plan, one) for one in candidates_so_far(plan))
        kept = [re.escape(one.folder.name) for one in subjects if self._is_kept(one)]
        return rf"(?!(?:{'|'.join(kept)})(?:/|$))(?:{FOLDER})" if kept else FOLDER

    def candidate(self, plan: StagePlan, folder: str) -> Subject:
        """Return the step or merge whose results are in a folder.

        Args:
            plan: The stage.
            folder: Name of the folder.

        Returns:
            The step or merge.
        """
        return or_stop(candidate_subject, plan, candidate_of(folder))

    def bridge_to_score(self, plan: StagePlan) -> str:
        """Return a pattern of the bridge's folder if the bridge may be scored.

        Args:
            plan: The stage.

        Returns:
            A regular expression of the folder's name, or NOTHING.
        """
        try:
            bridge = bridge_subject(plan, self.plans)
        except EvaluationError:  # reported once it is asked for
            return "bridge"
        return NOTHING if self._is_kept(bridge) else "bridge"

    def _is_kept(self, subject: Subject) -> bool:
        return self.is_main and is_retained(subject, self.outdated)

    def score(self, subjects: Sequence[Subject]) -> list[str]:
        """Return what a scoring job reads; stop where a checkpoint is not there.

        Args:
            subjects: Checkpoints of one stage that the job scores.

        Returns:
            Input files of the rule.
        """
        if not self.is_main:
            return []
        late = [subject for subject in subjects if self.outdated.score(subject)]
        for subject in late:
            require_checkpoint(subject)
        plan = subjects[0].plan
        before = [entry.record for entry in stage_entries(plan)]
        files = self._read(before, _record(subjects[0], SCORE), bool(late), [])
        return [*files, self.checked(plan)] if late else files

    def bridge_score(self, plan: StagePlan) -> list[str]:
        """Return what the bridge's job reads.

        It comes after its own stage's job, so that no two jobs score one checkpoint.

        Args:
            plan: The stage.

        Returns:
            Input files of the rule.
        """
        if not self.is_main:
            return []
        subject = self._bridge(plan)
        files, bridge = self.score([subject]), plan.stage.bridge
        owner = self.plans.get(bridge.stage or "") if bridge else None
        if owner is None or subject.step is None or subject.step not in or_stop(stage_steps, owner):
            return files
        own = step_subject(owner, subject.step)
        origin = str(_record(own, SCORE))
        if not self.outdated.score(subject):
            return files  # even an `ancient` file has it run again where another job makes that
        return [*files, origin if self.outdated.score(own) else ancient(origin)]

    def collect(self, plan: StagePlan, folder: str) -> list[str]:
        """Return what the step reads that makes a checkpoint's results from stored scores.

        Args:
            plan: The stage.
            folder: Folder of the checkpoint's results, below the stage's.

        Returns:
            Input files of the rule.
        """
        subject = self._subject(plan, folder)
        is_late = self._is_late(self.outdated.collect, subject)
        before = [_record(subject, SCORE)]
        before += [entry.record for entry in graded_entries(plan)] if is_late else []
        return self._read(before, _record(subject, COLLECT), is_late, [plan])

    def deltas(self, plan: StagePlan, folder: str) -> list[str]:
        """Return what the step reads that compares a step or merge with the bridge.

        Args:
            plan: The stage.
            folder: Name of the folder of the step's or merge's results.

        Returns:
            Input files of the rule.
        """
        folders = self.candidate(plan, folder).folder, plan.bridge_folder
        before = [record_path(folder, COLLECT) for folder in folders]
        is_late = self._is_late(self.outdated.deltas, plan, candidate_of(folder))
        return self._read(before, record_path(folders[0], STEP_DELTAS), is_late, [plan])

    def result_file(self, plan: StagePlan, folder: str, is_deltas: bool) -> list[str]:
        """Return what is read for one file of a checkpoint that is requested by its name.

        Args:
            plan: The stage.
            folder: Folder of the checkpoint's results, below the stage's.
            is_deltas: Whether the file is one of the comparison with the bridge.

        Returns:
            Input files of the rule.
        """
        subject = self._subject(plan, folder)
        if is_deltas and subject.candidate is not None:
            is_late = self._is_late(self.outdated.deltas, plan, subject.candidate)
            return self._read([_record(subject, STEP_DELTAS)], None, is_late, [plan])
        is_late = self._is_late(self.outdated.collect, subject)
        return self._read([_record(subject, COLLECT)], None, is_late, [plan])

    def tables(self, plan: StagePlan) -> list[str]:
        """Return what the stage's tables and report are made of.

        Args:
            plan: The stage.

        Returns:
            Input files of the rule.
        """
        if not self.is_main:
            return []
        steps = or_stop(stage_candidates, plan)
        if plan.stage.bridge is not None:
            self._bridge(plan)
        before = [record_path(*place) for place in stage_results(plan, steps)]
        is_late = self.outdated.tables(plan)
        if is_late:  # texts of flips
            before += [entry.record for entry in stage_entries(plan)]
        return self._read(before, record_path(plan.results, TABLES), is_late, [])

    def figures(self, plan: StagePlan) -> list[str]:
        """Return what the stage's figures are made of.

        Args:
            plan: The stage.

        Returns:
            Input files of the rule.
        """
        is_late = self._is_late(self.outdated.figures, plan)
        made = record_path(plan.results, FIGURES)
        return self._read([record_path(plan.results, TABLES)], made, is_late, [plan])

    def comparison(self) -> list[str]:
        """Return what the page of several runs reads; Snakemake knows nothing of the other runs.

        Returns:
            Input files of the rule.
        """
        made = record_path(self.results, COMPARISON)
        is_late = self._is_late(self.outdated.comparison)
        return self._read(self._all_tables(), made, is_late, self.plans.values())

    def front(self) -> list[str]:
        """Return what the front page of all stages reads.

        Returns:
            Input files of the rule.
        """
        comparison = [record_path(self.results, COMPARISON)] if self.config.runs else []
        made = record_path(self.results, FRONT)
        is_late = self._is_late(self.outdated.front)
        return self._read([*self._all_tables(), *comparison], made, is_late, self.plans.values())

    def _all_tables(self) -> list[Path]:
        return [record_path(plan.results, TABLES) for plan in self.plans.values()]

    def _subject(self, plan: StagePlan, folder: str) -> Subject:
        if folder == "bridge":
            return self._bridge(plan)
        return self.candidate(plan, folder.removeprefix("by_checkpoint/"))

    def _bridge(self, plan: StagePlan) -> Subject:
        return or_stop(bridge_subject, plan, self.plans)

    def _is_late(self, question: Callable[..., bool], *arguments: object) -> bool:
        return self.is_main and or_stop(question, *arguments)

    def _read(
        self,
        before: Iterable[Path],
        made: Path | None,
        is_outdated: bool,
        plans: Iterable[StagePlan],
    ) -> list[str]:
        """Return what a rule reads; where it is outdated, Snakemake has to make its record `made`.

        Of a job behind one that is forced, however far, Snakemake asks only whether a file that it
        reads is made, not whether it is forced itself. So an outdated job reads nothing `ancient`,
        and the outdated caches of `plans`: what is between them and it need not be made again. In a
        run with `--forcerun` nothing is `ancient`. What is made and not outdated reads nothing that is
        missing, such as a cache that was removed: Snakemake would make it again where another job needs
        that cache.
        """
        or_stop(decide_by_records, self._workflow)  # known only once the first rule asks
        if not self.is_main:
            return []
        if is_outdated and made is not None:
            force(self._workflow, str(made))
        files = [str(path) for path in before]
        if is_outdated:
            return list(dict.fromkeys([*files, *self._outdated_caches(plans)]))
        if is_forced_by_hand(self._workflow):
            return files
        is_made = made is not None and os.path.lexists(made)
        return [ancient(file) for file in files if not is_made or os.path.lexists(file)]

    def _outdated_caches(self, plans: Iterable[StagePlan]) -> Iterator[str]:
        for plan in plans:
            for entry in stage_entries(plan):
                if or_stop(self.outdated.cache, entry):
                    yield str(entry.record)


def _record(subject: Subject, step: str) -> Path:
    return record_path(subject.folder, step)


def _asks_for(target: str, plan: StagePlan) -> bool:
    """Return whether a target needs all of a stage; a file of one checkpoint asks for itself."""
    if target in ("all", plan.name):
        return True
    folder = os.path.relpath(target, plan.results)
    return not folder.startswith("..") and not folder.startswith(("by_checkpoint", "bridge/"))
