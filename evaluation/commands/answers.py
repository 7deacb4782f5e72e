"""Commands for generated answers: verify or import a file of them."""

import argparse
import json

from evaluation.commands import (
    Commands,
    a_name,
    a_path,
    add_configured,
    chosen_plans,
    configured_plans,
)
from evaluation.errors import ConfigError
from evaluation.settings.plan import StagePlan
from evaluation.wording import no_such


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `verify-answers` and `import-completions`."""
    command = add_configured(
        commands, _verify_answers, "verify a JSONL file of completions (id, completion, sample)"
    )
    command.add_argument("completions", type=a_path, help="JSONL, also gzipped")
    command.add_argument(
        "--task", type=a_name, required=True, help="generation task that was completed"
    )
    command.add_argument(
        "--stage", type=a_name, help="stage that has the task (default: the first one)"
    )
    command.add_argument("--output", type=a_path, help="JSONL with the verdicts")

    _add_import(commands)


def _add_import(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = add_configured(
        commands,
        _import_completions,
        "store completions of another engine as a checkpoint's (import-completions FILE)",
        stage=True,
    )
    command.add_argument(
        "completions", type=a_path, nargs="?", help="JSONL: ours, lm-eval's, vLLM's or OpenAI's"
    )
    command.add_argument("--task", type=a_name, required=True, help="task that was completed")
    command.add_argument(
        "--checkpoint",
        type=a_name,
        required=True,
        help="whose they are: a step of the stage, or `bridge`",
    )
    command.add_argument(
        "--engine", type=a_name, help="name of the engine (default: that of the format)"
    )
    command.add_argument("--engine-version", type=a_name, help="its version")
    command.add_argument(
        "--forget", action="store_true", help="generate the task's completions here again"
    )


def _import_completions(options: argparse.Namespace) -> int:
    """Store completions of a file; the next run verifies them."""
    from evaluation.grading.imports import forget_completions, import_file

    plans = configured_plans(options)
    plan = _plan_with(plans, options)
    if (options.completions is None) != options.forget:
        raise ConfigError("give either a file of completions, or --forget")
    if options.forget:
        forget_completions(plans, plan, options.checkpoint, options.task)
        return 0
    stored = import_file(
        plans,
        plan,
        options.checkpoint,
        options.task,
        options.completions,
        (options.engine, options.engine_version),
    )
    print(f"{stored} completions stored; the next run verifies them: `snakemake {plan.name}`")
    return 0


def _verify_answers(options: argparse.Namespace) -> int:
    """Verify a file of completions, and print the pass rates as JSON."""
    from evaluation.files import write_jsonl
    from evaluation.grading.by_hand import check_verified, verify_by_hand

    plan = _plan_with(configured_plans(options), options)
    rows, summary = verify_by_hand(plan, options.task, options.completions)
    if options.output is not None:
        write_jsonl(options.output, rows)
    print(json.dumps(summary, indent=1), flush=True)
    check_verified(plan, rows)
    return 0


def _plan_with(plans: dict[str, StagePlan], options: argparse.Namespace) -> StagePlan:
    """Return the first chosen stage that has the task."""
    chosen = chosen_plans(options, plans).values()
    for plan in chosen:
        if options.task in plan.suite.generation_tasks:
            return plan
    known = dict.fromkeys(name for plan in chosen for name in plan.suite.generation_tasks)
    raise ConfigError(f"{options.config}: {no_such('generation task', options.task, known)}")
