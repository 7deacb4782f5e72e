"""Commands for generated answers: verify or import a file of them, and list prompts by pass rate."""

import argparse
import json
import sys

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
    """Add `verify-answers`, `import-completions` and `curriculum`."""
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
    command = add_configured(
        commands, _curriculum, "list ids of prompts by pass rate, one per line, for a trainer"
    )
    command.add_argument(
        "results", type=a_path, help="a checkpoint's folder of results, or a file of completions"
    )
    command.add_argument("--task", type=a_name, required=True, help="generation task")
    command.add_argument("--stage", type=a_name, help="of a file: the stage that has the task")
    command.add_argument(
        "--verifier", type=a_name, help="verifier whose verdicts count (default: the primary one)"
    )
    command.add_argument(
        "--band",
        type=float,
        nargs=2,
        default=(0.01, 0.99),
        metavar=("LOW", "HIGH"),
        help="pass rates to keep, both ends included (%(default)s)",
    )
    command.add_argument("--order", choices=("easiest", "hardest"), default="easiest")
    command.add_argument(
        "--rates", action="store_true", help="add a tab and the pass rate to each line"
    )
    command.add_argument(
        "--known",
        type=a_path,
        help="ids that the trainer has, one per line; an id that is not among them is an error",
    )
    command.add_argument("--output", type=a_path, help="file to write (default: standard output)")


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
        help="whose they are: a step of the stage, a merge's name, or `bridge`",
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


def _curriculum(options: argparse.Namespace) -> int:
    """Write the ids of prompts, ordered by pass rate."""
    from evaluation.files import write_text
    from evaluation.reporting.curriculum import check_ids, stored_rates
    from evaluation.reporting.curriculum import curriculum as choose

    if options.results.is_file():
        from evaluation.grading.by_hand import pass_rates

        plan = _plan_with(configured_plans(options), options)
        rates = pass_rates(plan, options.task, options.results, options.verifier)
    else:
        rates = list(stored_rates(options.results, options.task, options.verifier))
    chosen = choose(options.results, options.task, rates, tuple(options.band), options.order)
    check_ids(chosen, options.known)
    lines = [f"{id}\t{rate:.6g}" if options.rates else id for id, rate in chosen]
    text = "\n".join(lines) + "\n"
    if options.output is None:
        sys.stdout.write(text)
    else:
        write_text(options.output, text)
    print(f"{len(chosen)} prompts", file=sys.stderr)
    return 0
