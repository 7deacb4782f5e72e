"""Whether tables, figures and pages show the results that there are, be they all or not.

`outdated` asks for more: that these are also all that the configuration wants. A watcher, and a run
in which a job failed, make pages of what there is.
"""

from collections.abc import Mapping
from pathlib import Path

from evaluation.checkpoints.subjects import steps_so_far
from evaluation.dependencies import steps as keys
from evaluation.records import Record, is_intact, read_record
from evaluation.settings.plan import StagePlan


def is_made(folder: Path, step: str, key: str) -> bool:
    """Whether a step's outputs in a folder are there, and of this key."""
    record = read_record(folder, step)
    return record is not None and record.key == key and is_intact(record, folder)


def tables_records(plans: Mapping[str, StagePlan]) -> dict[str, Record]:
    """The records of the tables that there are, by stage."""
    found = {name: read_record(plan.results, keys.TABLES) for name, plan in plans.items()}
    return {name: record for name, record in found.items() if record is not None}


def are_tables_late(plan: StagePlan) -> bool:
    """Whether there are results that the stage's tables do not show."""
    steps = steps_so_far(plan)
    records = keys.stage_records(plan, steps)
    key = keys.tables_key(plan, steps, records)
    return any(records) and not is_made(plan.results, keys.TABLES, key)


def are_figures_late(plan: StagePlan) -> bool:
    """Whether there are tables that the stage's figures do not show."""
    tables = read_record(plan.results, keys.TABLES)
    return tables is not None and not is_made(plan.results, keys.FIGURES, keys.figures_key(tables))


def is_comparison_late(plans: Mapping[str, StagePlan]) -> bool:
    """Whether the page of other runs is of other tables, or of other runs."""
    tables, config = tables_records(plans), next(iter(plans.values())).config
    key = keys.comparison_key(tables, config.runs)
    is_asked = bool(tables and config.runs)
    return is_asked and not is_made(Path(config.results), keys.COMPARISON, key)


def is_front_late(plans: Mapping[str, StagePlan]) -> bool:
    """Whether the page of all stages is of other tables."""
    tables, config = tables_records(plans), next(iter(plans.values())).config
    results = Path(config.results)
    beside = read_record(results, keys.COMPARISON) if config.runs else None
    return bool(tables) and not is_made(results, keys.FRONT, keys.front_key(tables, beside))
