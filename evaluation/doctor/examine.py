"""Runs all checks in order; without a usable configuration, only those of the machine."""

from collections.abc import Iterable
from pathlib import Path

from evaluation.doctor.answers import check_answers
from evaluation.doctor.caches import Caches, check_caches, check_offline, check_tokenizers
from evaluation.doctor.checkpoints import check_checkpoints, find_subjects
from evaluation.doctor.findings import Check, Finding
from evaluation.doctor.folders import check_folders
from evaluation.doctor.machine import (
    check_gpu,
    check_sandbox,
    check_slurm,
    check_versions,
)
from evaluation.errors import ConfigError
from evaluation.settings.config import Config, load_config
from evaluation.settings.generation import GenerationTask
from evaluation.settings.objectives import objective_items
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import named_stage, plan_stages, stage_suite
from evaluation.settings.tiers import TIERS
from evaluation.settings.verifiers import Pattern


def examine(path: Path, stage: str | None, *, gate: bool) -> list[Check]:
    """Check everything that scoring one stage (None: all) needs; only the machine if the configuration fails.

    Args:
        gate: Whether this is the workflow's check before the first job. Faults that do not stop every
            job are then warnings: a broken checkpoint, or the GPU of Snakemake's own machine.
    """
    machine = [check_gpu(), check_versions(), check_slurm()]
    if gate:
        machine[0] = machine[0].as_warning
    try:
        config = load_config(path)
        suites, plans = _check_suites(config), plan_stages(config)
    except ConfigError as error:
        faults = tuple(Finding("fault", "", line) for line in str(error).splitlines())
        return [Check("configuration", f"{path} cannot be used", faults), *machine]
    chosen = {stage: named_stage(plans, stage, path)} if stage else plans
    return [
        Check(
            "configuration",
            f"{path}: {', '.join(chosen)}",
            (*_uncompared(chosen.values()), *_formless(chosen.values())),
        ),
        suites,
        *_check_stages(chosen, plans, gate=gate),
        *machine,
    ]


def _check_suites(config: Config) -> Check:
    """Count the items of all suites; raise ConfigError if one cannot be read."""
    suites = [stage_suite(config, name) for name in config.stages]
    counts = [
        f"{len({name for suite in suites for name in getattr(suite, tier.section)})} {tier.section}"
        for tier in TIERS.values()
    ]
    return Check("suites", f"{config.suites}: {', '.join(counts)}")


def _uncompared(plans: Iterable[StagePlan]) -> Iterable[Finding]:
    """Yield a warning for each stage with an objective but no bridge."""
    for plan in plans:
        if plan.stage.objective and plan.stage.bridge is None:
            yield Finding(
                "warning",
                plan.name,
                f"stages.{plan.name}.objective: without a bridge nothing is compared with it; name a "
                f"`stage` or a `path` in stages.{plan.name}.bridge",
            )


def _formless(plans: Iterable[StagePlan]) -> Iterable[Finding]:
    """Yield a warning for each objective on answers whose form no prompt shows."""
    for plan in plans:
        for number, objective in enumerate(plan.stage.objective):
            key = f"stages.{plan.name}.objective.{number}"
            items = objective_items(objective, plan.suite, key)
            names = [name for name, task in items.items() if _shows_no_form(task)]
            if names:
                yield Finding(
                    "warning",
                    plan.name,
                    f"{key}: {', '.join(names)}: no prompt shows the form of an answer, so a change may be "
                    "one of format; decide on a task with solved examples (`num_fewshot`)",
                )


def _shows_no_form(task: object) -> bool:
    """Return whether a base model reads no solved example, and a pattern reads its answers."""
    return (
        isinstance(task, GenerationTask)
        and not (task.chat or task.num_fewshot)
        and isinstance(task.verifiers[task.headline], Pattern)
    )


def _check_stages(
    chosen: dict[str, StagePlan], plans: dict[str, StagePlan], *, gate: bool
) -> list[Check]:
    caches = Caches()
    checks = [check_tokenizers(chosen.values(), caches), check_caches(chosen.values(), caches)]
    checks.append(check_offline(chosen.values(), caches))
    subjects = find_subjects(chosen.values(), plans)
    checks += check_checkpoints(subjects, caches, gate=gate)
    checks += check_answers(list(chosen.values()), caches)
    if any(plan.suite.runs_programs for plan in chosen.values()):
        checks.append(check_sandbox(next(iter(chosen.values())).config.verification.sandbox))
    checks.append(check_folders(chosen))
    return checks
