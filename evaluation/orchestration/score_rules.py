"""The rules that score one checkpoint per job, several per job, or the bridge.

`{checkpoint}` is the name of a step's folder, or `bridge`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.io import ancient

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.subjects import (
    Subject,
    bridge_subject,
    stage_steps,
    step_subject,
    steps_so_far,
)
from evaluation.dependencies.caches import stage_entries
from evaluation.dependencies.known_steps import is_retained
from evaluation.dependencies.steps import SCORE
from evaluation.errors import EvaluationError
from evaluation.orchestration.rule_inputs import RuleInputs
from evaluation.orchestration.stops import or_stop, require_checkpoint
from evaluation.records import record_path
from evaluation.settings.plan import StagePlan
from evaluation.settings.steps import RESULTS, step_of_results


@dataclass(frozen=True, kw_only=True)
class ScoreRule:
    """A rule: its jobs' input files, and the option of `score` that names their checkpoints."""

    name: str
    plan: StagePlan
    log: str
    folders: Sequence[str]
    input: Callable[[Any], list[str]]
    which: Callable[[Any], str]
    checkpoint: str = RESULTS
    """Regular expression of the wildcard."""
    is_shared: bool = False
    """Whether a job scores several checkpoints."""


def score_rules(inputs: RuleInputs, per_job: Callable[[StagePlan], int]) -> Iterator[ScoreRule]:
    """Yield each stage's rules: for single checkpoints, for groups of `per_job` steps, for the bridge."""
    for plan in inputs.plans.values():
        yield _single_rule(inputs, plan)
        for group in _step_groups(inputs, plan, per_job(plan)):
            yield _group_rule(inputs, plan, group)
        if plan.stage.bridge is not None:
            yield _bridge_rule(inputs, plan)


def _single_rule(inputs: RuleInputs, plan: StagePlan) -> ScoreRule:
    return ScoreRule(
        name=f"score_{plan.name}",
        plan=plan,
        log=f"{plan.name}_{{checkpoint}}",
        folders=[f"{plan.results}/by_checkpoint/{{checkpoint}}"],
        input=lambda w: _files(inputs, [step_subject(plan, _step(w))]),
        which=lambda w: f"--step {_step(w)}",
        checkpoint=_steps(inputs, plan),
    )


def _step(wildcards: Any) -> int:
    return step_of_results(Path(wildcards.checkpoint))


def _step_groups(inputs: RuleInputs, plan: StagePlan, size: int) -> Iterator[tuple[int, ...]]:
    """Yield the groups of steps that one job scores together.

    Groups are formed from the first step on, so that new steps change only the last group. The rule for
    single steps scores the steps of a group in which a checkpoint is still missing.
    """
    steps = plan.stage.steps
    if size == 1 or not isinstance(steps, tuple):
        return
    for start in range(0, len(steps), size):
        group = steps[start : start + size]
        if not inputs.is_main or all(configuration_file(plan.checkpoint(step)) for step in group):
            yield group


def _group_rule(inputs: RuleInputs, plan: StagePlan, group: tuple[int, ...]) -> ScoreRule:
    """Return a rule without a wildcard: Snakemake prefers it to the rule for single steps."""
    return ScoreRule(
        name=f"score_{plan.name}_from_{group[0]}",
        plan=plan,
        log=f"{plan.name}_from_{group[0]}",
        folders=[str(plan.step_folder(step)) for step in group],
        input=lambda _: _files(inputs, [step_subject(plan, step) for step in group]),
        which=lambda _: f"--step {' '.join(map(str, group))}",
        is_shared=True,
    )


def _bridge_rule(inputs: RuleInputs, plan: StagePlan) -> ScoreRule:
    return ScoreRule(
        name=f"score_{plan.name}_bridge",
        plan=plan,
        log=f"{plan.name}_{{checkpoint}}",
        folders=[f"{plan.results}/{{checkpoint}}"],
        input=lambda _: _bridge_files(inputs, plan),
        which=lambda _: "--bridge",
        checkpoint=_bridge(inputs, plan),
    )


def _steps(inputs: RuleInputs, plan: StagePlan) -> str:
    """Return a pattern of the folders of steps that may be scored.

    Deleted checkpoints whose results are kept match no rule: with `--forcerun`, Snakemake would remove
    their results before the rule can fail.
    """
    subjects = (step_subject(plan, step) for step in steps_so_far(plan))
    kept = [
        re.escape(subject.folder.name)
        for subject in subjects
        if _must_keep_results(inputs, subject)
    ]
    return rf"(?!(?:{'|'.join(kept)})(?:/|$))(?:{RESULTS})" if kept else RESULTS


def _bridge(inputs: RuleInputs, plan: StagePlan) -> str:
    """Return a pattern of the bridge's folder; it matches nothing if the bridge may not be scored."""
    try:
        bridge = bridge_subject(plan, inputs.plans)
    except EvaluationError:  # reported when it is requested
        return "bridge"
    return "(?!)" if _must_keep_results(inputs, bridge) else "bridge"


def _must_keep_results(inputs: RuleInputs, subject: Subject) -> bool:
    return inputs.is_main and is_retained(subject, inputs.outdated)


def _files(inputs: RuleInputs, subjects: Sequence[Subject]) -> list[str]:
    """Return the input files of a scoring job; stop if one of its checkpoints is missing."""
    if not inputs.is_main:
        return []
    outdated = [subject for subject in subjects if inputs.outdated(SCORE, subject)]
    for subject in outdated:
        require_checkpoint(subject)
    plan = subjects[0].plan
    before = [entry.record for entry in stage_entries(plan)]
    files = inputs.read(before, record_path(subjects[0].folder, SCORE), bool(outdated))
    return [*files, inputs.checked(plan)] if outdated else files


def _bridge_files(inputs: RuleInputs, plan: StagePlan) -> list[str]:
    """Return the input files of the bridge's job, which waits for the job that scores it as a step."""
    if not inputs.is_main:
        return []
    subject = or_stop(bridge_subject, plan, inputs.plans)
    files, bridge = _files(inputs, [subject]), plan.stage.bridge
    owner = inputs.plans.get(bridge.stage or "") if bridge else None
    if owner is None or subject.step is None or subject.step not in or_stop(stage_steps, owner):
        return files
    own = step_subject(owner, subject.step)
    origin = str(record_path(own.folder, SCORE))
    if not inputs.outdated(SCORE, subject):
        return files  # even an `ancient` input makes the job run again if another job makes it
    return [*files, origin if inputs.outdated(SCORE, own) else ancient(origin)]
