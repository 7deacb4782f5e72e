"""What the rules of the workflow read and write, and which of them have to run.

A rule runs if its output is missing, or if it is outdated: then it asks for a file that is never
there (a token, made at once and removed at the end of the run). All that a rule reads is `ancient`
where it is not outdated, so that the age of files decides nothing.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from snakemake.exceptions import WorkflowError
from snakemake.io import ancient

from evaluation.checkpoints.discovery import configuration_file
from evaluation.checkpoints.subjects import (
    Subject,
    bridge_subject,
    stage_steps,
    step_subject,
)
from evaluation.dependencies.caches import CacheEntry, Kind, stage_entries
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.steps import COLLECT, SCORE, STEP_DELTAS, TABLES
from evaluation.errors import EvaluationError
from evaluation.files import fingerprint
from evaluation.orchestration.internals import decide_by_records
from evaluation.records import record_path
from evaluation.settings.plan import StagePlan

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

TOKENS = Path(".snakemake") / "outdated"


class RuleInputs:
    """Input files of every rule; nothing but the target itself in a job of the run."""

    def __init__(self, plans: Mapping[str, StagePlan], workflow: Any) -> None:
        self.plans = plans
        self.outdated = Outdated(plans)
        self._workflow = workflow
        self._is_main = is_main = bool(workflow.is_main_process)
        results = next(iter(plans.values())).config.results
        self._run = f"{fingerprint(results)}-{uuid.uuid4().hex[:8]}" if is_main else "job"

    @property
    def token(self) -> str:
        return str(TOKENS / self._run / "token")

    def check_token(self, plan: StagePlan) -> str:
        """What the check before a stage's scoring jobs writes; those that are outdated wait for it."""
        return str(TOKENS / self._run / plan.name)

    def entry(self, kind: Kind, setup: str, name: str) -> CacheEntry:
        """The entry of a cache folder; a stage's prompts are called by the stage."""
        for plan in self.plans.values():
            if plan.cache.name == setup:
                for entry in stage_entries(plan):
                    if entry.kind == kind and (kind == "tokenizer" or entry.name == name):
                        return entry
        raise WorkflowError(
            f"no stage has a {kind} {name!r} in {setup}; see `suites` of the stages"
        )

    def cache(self, entry: CacheEntry) -> list[str]:
        """Of a rule of prefill: the tokenizer comes first."""
        tokenizer = stage_entries(entry.plan)[0]
        before = [] if entry.kind == "tokenizer" else [tokenizer.record]
        return self._of(before, self.outdated.cache(entry), always_ancient=True)

    def score(self, subjects: Sequence[Subject]) -> list[str]:
        """Of a scoring job; raises WorkflowError for a checkpoint that is not there."""
        if not self._is_main:
            return []
        late = [subject for subject in subjects if self.outdated.score(subject)]
        for subject in late:
            _require_checkpoint(subject)
        plan = subjects[0].plan
        before = [entry.record for entry in stage_entries(plan)]
        token = self.check_token(plan)
        return self._of(before, bool(late), always_ancient=True, token=token)

    def bridge_score(self, plan: StagePlan) -> list[str]:
        """Of the bridge's job: after its own stage's, so that no two jobs score one checkpoint."""
        if not self._is_main:
            return []
        subject = self._bridge(plan)
        files, bridge = self.score([subject]), plan.stage.bridge
        owner = self.plans.get(bridge.stage or "") if bridge else None
        if owner is None or subject.step is None or subject.step not in or_stop(stage_steps, owner):
            return files
        own = step_subject(owner, subject.step)
        return [*files, *self._of([_record(own, SCORE)], self.outdated.score(own))]

    def collect(self, plan: StagePlan, folder: str) -> list[str]:
        """Of the step that writes a checkpoint's tier files."""
        subject = self.subject(plan, folder)
        return self._of([_record(subject, SCORE)], self._asks(self.outdated.collect, subject))

    def deltas(self, plan: StagePlan, step: str) -> list[str]:
        folders = plan.step_folder(int(step)), plan.bridge_folder
        before = [record_path(folder, COLLECT) for folder in folders]
        return self._of(before, self._is_main and self.outdated.deltas(plan, int(step)))

    def result_file(self, plan: StagePlan, folder: str, is_deltas: bool) -> list[str]:
        """Of one file of a checkpoint, asked for by its name."""
        subject = self.subject(plan, folder)
        if is_deltas and subject.step is not None:
            late = self._is_main and self.outdated.deltas(plan, subject.step)
            return self._of([record_path(subject.folder, STEP_DELTAS)], late, token="")
        late = self._asks(self.outdated.collect, subject)
        return self._of([_record(subject, COLLECT)], late, token="")

    def tables(self, plan: StagePlan) -> list[str]:
        if not self._is_main:
            return []
        steps = or_stop(stage_steps, plan)
        before = [record_path(plan.step_folder(step), COLLECT) for step in steps]
        if plan.stage.bridge is not None:
            self._bridge(plan)
            before.append(record_path(plan.bridge_folder, COLLECT))
            before += [record_path(plan.step_folder(step), STEP_DELTAS) for step in steps]
        late = self.outdated.tables(plan)
        caches = [ancient(str(entry.record)) for entry in stage_entries(plan)]  # texts of flips
        return [*self._of(before, late), *(caches if late else [])]

    def figures(self, plan: StagePlan) -> list[str]:
        late = self._is_main and self.outdated.figures(plan)
        return self._of([record_path(plan.results, TABLES)], late)

    def front(self) -> list[str]:
        before = [record_path(plan.results, TABLES) for plan in self.plans.values()]
        return self._of(before, self._is_main and self.outdated.front())

    def subject(self, plan: StagePlan, folder: str) -> Subject:
        if folder == "bridge":
            return self._bridge(plan)
        return step_subject(plan, int(folder.rpartition("_")[2]))

    def _bridge(self, plan: StagePlan) -> Subject:
        return or_stop(bridge_subject, plan, self.plans)

    def _asks(self, question: Callable[[Subject], bool], subject: Subject) -> bool:
        return self._is_main and or_stop(question, subject)

    def _of(
        self,
        before: Iterable[Path],
        is_outdated: bool,
        *,
        always_ancient: bool = False,
        token: str | None = None,
    ) -> list[str]:
        or_stop(decide_by_records, self._workflow)  # known only once the first rule asks
        if not self._is_main:
            return []
        files = [str(path) for path in before]
        if not is_outdated or always_ancient:
            files = [ancient(file) for file in files]
        token = self.token if token is None else token
        return [*files, token] if is_outdated and token else files


def _record(subject: Subject, step: str) -> Path:
    return record_path(subject.folder, step)


def _require_checkpoint(subject: Subject) -> None:
    """Stops before anything runs if a checkpoint that is to be scored is not there."""
    if configuration_file(subject.checkpoint):
        return
    plan = subject.plan
    key = f"stages.{plan.name}.{'bridge' if subject.role == 'bridge' else 'steps'}"
    what = (
        "correct it, or wait until training has saved it"
        if subject.role == "bridge"
        else f"correct `checkpoints`, take {subject.step} out of `steps`, or wait until it is saved"
    )
    raise WorkflowError(
        f"{key}: {subject.checkpoint}: no checkpoint there (no model_config.json, config.yaml or "
        f"config.json); {what}"
    )


def or_stop(
    function: Callable[Given, Answer], *arguments: Given.args, **keywords: Given.kwargs
) -> Answer:
    """Calls a function of the package; its errors end the run as one sentence."""
    try:
        return function(*arguments, **keywords)
    except EvaluationError as error:
        raise WorkflowError(str(error)) from None
