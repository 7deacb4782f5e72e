"""`prefill` fetches and tokenizes data (needs the internet); `schema` writes schemas and tables."""

import argparse
import logging
from pathlib import Path

from evaluation.commands import (
    Commands,
    a_name,
    a_path,
    add_command,
    add_configured,
    chosen_plans,
    configured_plans,
)
from evaluation.errors import ConfigError, EvaluationError, SourceError, no_such
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, Tier

log = logging.getLogger(__name__)


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `prefill` and `schema`."""
    command = add_configured(
        commands,
        _prefill,
        "make the caches of a stage, or of all (needs the internet or mirrors)",
        stage=False,
    )
    only = command.add_mutually_exclusive_group()
    only.add_argument("--tokenizer", action="store_true", help="only the tokenizer")
    for tier in TIERS.values():
        option, what = tier.cache.flag, f"{tier.name}: {tier.title}"
        if tier.cache.per_stage:
            only.add_argument(option, action="store_true", help=f"only the {tier.unit} of {what}")
        else:
            only.add_argument(
                option,
                type=a_name,
                nargs="+",
                metavar="NAME",
                help=f"only this {tier.item} of {what}",
            )

    command.add_argument("--planned", help=argparse.SUPPRESS)  # by a run, with the folder of caches
    command.add_argument("--setup", help=argparse.SUPPRESS)

    command = add_command(
        commands, _schema, "write the JSON schema and the tables of keys in the documentation"
    )
    command.add_argument("--root", type=a_path, default=Path(), help="root of the project")


def _prefill(options: argparse.Namespace) -> int:
    """Make all caches of some stages, or single entries."""
    from evaluation.checkpoints.agreement import tokenizer_warnings

    plans = configured_plans(options)
    chosen = [*chosen_plans(options, plans).values()]
    if options.setup:
        chosen = [plan for plan in chosen if plan.cache.name == options.setup]
    asked = _asked(options)
    if asked is not None:
        chosen = _with_entries(chosen, *asked)
    failed = dict[str, EvaluationError]()
    told = set[Path]()
    for plan in chosen:
        if asked is None:
            _prefill_tokenizer(plan, told)
            for warning in tokenizer_warnings(plan, plans):
                log.warning("%s", warning)
        for error in [] if options.tokenizer else _prefill_stage(plan, asked):
            failed.setdefault(str(error), error)  # an entry that several stages share fails in each
    if len(failed) == 1:
        raise next(iter(failed.values()))
    if failed:
        raise SourceError(f"{len(failed)} entries cannot be made: {'; '.join(failed)}")
    if options.planned:
        from evaluation.flow.make import record_prefilled

        record_prefilled(chosen, options.planned)
    return 0


def _asked(options: argparse.Namespace) -> tuple[Tier, list[str]] | None:
    """Return the requested tier with the names of the requested items; no names mean all items."""
    for tier in TIERS.values():
        value = getattr(options, tier.cache.name)
        if value not in (None, False):
            return tier, [] if value is True else value
    return None


def _with_entries(plans: list[StagePlan], tier: Tier, names: list[str]) -> list[StagePlan]:
    """Return the stages that have the requested items; raise ConfigError if no stage has them."""
    matching = [plan for plan in plans if _entries(plan, tier, names)]
    known = dict.fromkeys(entry for plan in plans for entry in plan.cache_entries(tier.name))
    stages = ", ".join(plan.name for plan in plans)
    for name in names:
        if name not in known:
            raise ConfigError(no_such(tier.item, name, known, f" in the suites of {stages}"))
    if not matching:
        raise ConfigError(
            f"no {tier.section} in the suites of {stages}; add some, or leave out {tier.cache.flag}"
        )
    return matching


def _entries(plan: StagePlan, tier: Tier, names: list[str]) -> list[str]:
    return [entry for entry in plan.cache_entries(tier.name) if not names or entry in names]


def _prefill_tokenizer(plan: StagePlan, told: set[Path]) -> None:
    """Fetch a stage's tokenizer, and log the remarks of its check once."""
    from evaluation.prefill.tokenizers import fetch_tokenizer, log_remarks

    fetch_tokenizer(plan)
    if plan.tokenizer_folder not in told:
        log_remarks(plan)
        told.add(plan.tokenizer_folder)


def _prefill_stage(
    plan: StagePlan, selection: tuple[Tier, list[str]] | None
) -> list[EvaluationError]:
    """Make a stage's entries; return the errors of those that cannot be made, which stop no other."""
    chosen = [selection] if selection else [(TIERS[name], []) for name in plan.tiers]
    entries = [(tier, entry) for tier, names in chosen for entry in _entries(plan, tier, names)]
    failed: list[EvaluationError] = []
    for tier, entry in entries:
        try:
            _prefill_entry(plan, tier, entry)
        except (ConfigError, SourceError) as error:
            log.error("%s; the other entries are made", error)
            failed.append(error)
    return failed


def _prefill_entry(plan: StagePlan, tier: Tier, entry: str) -> None:
    try:
        PREFILLS[tier.name].make(plan, entry)
    except SourceError as error:  # a file may be shared by several items: name the item
        if any(f"{of}{entry}" in str(error) for of in (f"{tier.section}.", f"{tier.item} ")):
            raise
        raise SourceError(f"{tier.section}.{entry}: {error}") from error


def _schema(options: argparse.Namespace) -> int:
    """Write the JSON schemas and the tables of keys of the settings, and print their files."""
    from evaluation.settings.schema import write_generated

    print(*write_generated(options.root), sep="\n")
    return 0
