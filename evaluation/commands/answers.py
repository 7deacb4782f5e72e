"""Commands for completions in a file: verify them, or store them as a checkpoint's."""

import argparse
import json

from evaluation.commands import (
    Commands,
    a_name,
    a_path,
    add_configured,
    add_subjects,
    asked_subjects,
    chosen_plans,
    configured_plans,
)
from evaluation.errors import ConfigError, no_such
from evaluation.settings.plan import StagePlan


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `verify-answers` and `import-completions`."""
    verify = add_configured(commands, _verify_answers, "verify completions in a file", stage=False)
    verify.add_argument("--output", type=a_path, help="JSONL with the verdicts")
    store = add_configured(commands, _import_completions, "store completions in a file", stage=True)
    add_subjects(store, bridge=True, steps="step whose completions they are")
    store.add_argument("--engine", type=a_name, default="another engine", help="with its version")
    for command in (verify, store):
        command.add_argument("completions", type=a_path, help="JSONL of `id` and `completion`")
        command.add_argument("--task", type=a_name, required=True, help="task that was completed")


def _import_completions(options: argparse.Namespace) -> int:
    from evaluation.grading.by_hand import import_file

    plans = configured_plans(options)
    plan = _plan_with(plans, options)
    for subject in asked_subjects(options, plan, plans):
        import_file(plans, subject, options.task, options.completions, options.engine)
    print(f"stored; the next run verifies them: `snakemake {plan.name}`")
    return 0


def _verify_answers(options: argparse.Namespace) -> int:
    """Write the verdicts, and print the pass rates as JSON."""
    from evaluation.files import write_jsonl
    from evaluation.grading.by_hand import verify_file
    from evaluation.grading.completions import check_samples, sample_rows

    plan = _plan_with(configured_plans(options), options)
    prompts, summary = verify_file(plan, options.task, options.completions)
    if options.output is not None:
        shown = ("id", "sample", "prompt", "completion", "verdicts")
        rows = ({key: row[key] for key in shown} for row in sample_rows(prompts))
        write_jsonl(options.output, rows)
    print(json.dumps(summary, indent=1), flush=True)
    check_samples(prompts, options.task, plan.config.verification.max_error_share)
    return 0


def _plan_with(plans: dict[str, StagePlan], options: argparse.Namespace) -> StagePlan:
    chosen = chosen_plans(options, plans).values()
    for plan in chosen:
        if options.task in plan.suite.generation_tasks:
            return plan
    known = dict.fromkeys(name for plan in chosen for name in plan.suite.generation_tasks)
    raise ConfigError(f"{options.config}: {no_such('generation task', options.task, known)}")
