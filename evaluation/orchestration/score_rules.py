"""The rules that score checkpoints of a stage: one in a job, several in a job, or the bridge.

`{candidate}` stands for the name of a folder, of a step or merge, or `bridge`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.subjects import step_subject
from evaluation.orchestration.rule_inputs import RuleInputs
from evaluation.settings.candidates import FOLDER, candidate_of, candidate_option
from evaluation.settings.plan import StagePlan


@dataclass(frozen=True, kw_only=True)
class ScoreRule:
    """A rule: what its jobs read, and the option of `score` that names their checkpoints."""

    name: str
    plan: StagePlan
    log: str
    folders: Sequence[str]
    input: Callable[[Any], list[str]]
    which: Callable[[Any], str]
    candidate: str = FOLDER
    """A pattern."""
    is_shared: bool = False
    """Whether a job scores several checkpoints."""


def score_rules(inputs: RuleInputs, per_job: Callable[[StagePlan], int]) -> Iterator[ScoreRule]:
    """Yield the rules that score checkpoints.

    Args:
        inputs: Input files of every rule.
        per_job: Returns how many checkpoints of a stage the profile puts into one job.

    Yields:
        The rules of each stage: of single checkpoints, of runs of steps, of the bridge.
    """
    for plan in inputs.plans.values():
        yield _of_candidates(inputs, plan)
        for run in _runs(inputs, plan, per_job(plan)):
            yield _of_run(inputs, plan, run)
        if plan.stage.bridge is not None:
            yield _of_bridge(inputs, plan)


def _of_candidates(inputs: RuleInputs, plan: StagePlan) -> ScoreRule:
    return ScoreRule(
        name=f"score_{plan.name}",
        plan=plan,
        log=f"{plan.name}_{{candidate}}",
        folders=[f"{plan.results}/by_checkpoint/{{candidate}}"],
        input=lambda w: inputs.score([inputs.candidate(plan, w.candidate)]),
        which=lambda w: candidate_option(candidate_of(w.candidate)),
        candidate=inputs.candidates_to_score(plan),
    )


def _runs(inputs: RuleInputs, plan: StagePlan, size: int) -> Iterator[tuple[int, ...]]:
    """Yield the runs of steps that one job scores together.

    Cut from the first step on, so that later steps change only the last run. A run with a checkpoint
    that is not there yet is left to the rule of single steps.
    """
    steps = plan.stage.steps
    if size == 1 or not isinstance(steps, tuple):
        return
    for start in range(0, len(steps), size):
        run = steps[start : start + size]
        if not inputs.is_main or all(configuration_file(plan.checkpoint(step)) for step in run):
            yield run


def _of_run(inputs: RuleInputs, plan: StagePlan, run: tuple[int, ...]) -> ScoreRule:
    """Return a rule without a wildcard, which Snakemake therefore prefers."""
    return ScoreRule(
        name=f"score_{plan.name}_from_{run[0]}",
        plan=plan,
        log=f"{plan.name}_from_{run[0]}",
        folders=[str(plan.step_folder(step)) for step in run],
        input=lambda _: inputs.score([step_subject(plan, step) for step in run]),
        which=lambda _: f"--step {' '.join(map(str, run))}",
        is_shared=True,
    )


def _of_bridge(inputs: RuleInputs, plan: StagePlan) -> ScoreRule:
    return ScoreRule(
        name=f"score_{plan.name}_bridge",
        plan=plan,
        log=f"{plan.name}_{{candidate}}",
        folders=[f"{plan.results}/{{candidate}}"],
        input=lambda _: inputs.bridge_score(plan),
        which=lambda _: "--bridge",
        candidate=inputs.bridge_to_score(plan),
    )
