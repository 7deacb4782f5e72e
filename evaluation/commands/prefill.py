"""`prefill`: fetches and tokenizes on a machine with internet; `schema` writes what is generated."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.commands import add_config, add_stage
from evaluation.errors import ConfigError
from evaluation.settings.config import load_config
from evaluation.settings.plan import plan_stages

if TYPE_CHECKING:
    from evaluation.settings.plan import StagePlan

Commands = argparse._SubParsersAction  # the only name argparse has for it


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "prefill", help="make the caches of a stage, or of all (needs the internet or mirrors)"
    )
    add_config(command)
    add_stage(command, required=False)
    only = command.add_mutually_exclusive_group()
    only.add_argument("--tokenizer", action="store_true", help="only the tokenizer")
    only.add_argument("--slice", metavar="NAME", help="only this Tier2 slice")
    only.add_argument("--task", metavar="NAME", help="only this Tier3 task")
    only.add_argument("--probes", action="store_true", help="only the Tier4 prompts")
    command.set_defaults(run=prefill)

    command = commands.add_parser(
        "schema", help="write the JSON schema and the table of keys in config/README.md"
    )
    command.add_argument("--root", type=Path, default=Path(), help="root of the project")
    command.set_defaults(run=schema)


def prefill(options: argparse.Namespace) -> int:
    plans = plan_stages(load_config(options.config))
    if options.stage is not None and options.stage not in plans:
        raise ConfigError(
            f"{options.config}: no stage {options.stage!r}; there are {', '.join(plans)}"
        )
    chosen = [plans[options.stage]] if options.stage else list(plans.values())
    for plan in chosen:
        _prefill_stage(plan, options)
    return 0


def _prefill_stage(plan: "StagePlan", options: argparse.Namespace) -> None:
    from evaluation.prefill.cloze import prefill_task
    from evaluation.prefill.probes import prefill_probes
    from evaluation.prefill.slices import prefill_slice
    from evaluation.prefill.tokenizers import prefill_tokenizer

    named = options.slice is not None or options.task is not None
    everything = not (options.tokenizer or named or options.probes)
    if everything or options.tokenizer:
        prefill_tokenizer(plan)
    for name in _chosen(options.slice, plan.suite.slices, "slice", plan, everything):
        prefill_slice(plan, name)
    for name in _chosen(options.task, plan.suite.tasks, "task", plan, everything):
        prefill_task(plan, name)
    if options.probes and not plan.suite.probes:
        raise ConfigError(f"stages.{plan.name}.suites: none of them has probes")
    if plan.suite.probes and (everything or options.probes):
        prefill_probes(plan)


def _chosen(
    name: str | None, known: object, kind: str, plan: "StagePlan", everything: bool
) -> list[str]:
    names = list(known) if isinstance(known, dict) else []
    if name is not None and name not in names:
        raise ConfigError(f"{plan.name} has no {kind} {name!r}; there are {', '.join(names)}")
    return [name] if name is not None else names if everything else []


def schema(options: argparse.Namespace) -> int:
    from evaluation.results.documents import write_documents
    from evaluation.settings.schema import write_generated

    for path in (*write_generated(options.root), *write_documents(options.root)):
        print(path)
    return 0
