"""What blocks, questions and prompts contribute to each metric, by the stored scores and answers."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluation.errors import ScoringError
from evaluation.files import write_parquet
from evaluation.metrics.layout import Layout
from evaluation.metrics.measures import Questions, measure_questions
from evaluation.metrics.perplexity import columns_of_blocks
from evaluation.metrics.positions import NATS, TOKENS, positions_of
from evaluation.metrics.rates import RATES, PromptRow, outcome
from evaluation.metrics.variance import Floats
from evaluation.results.columns import BLOCKS, CANDIDATES, read_table, rows_of
from evaluation.results.files import COLLECT_AGAIN, parse_model, unusable
from evaluation.results.items import models_of
from evaluation.results.kinds import Units, units_of
from evaluation.results.probe_files import PromptEntry, Tier4File
from evaluation.results.tier_files import SliceEntry, TaskEntry
from evaluation.results.units_file import ByItem, read_units, units_table
from evaluation.settings.sources import Normalization
from evaluation.settings.tiers import Tier


def block_units(tier: Tier, table: pa.Table, data: object) -> Units:
    """Return a slice's blocks in order; `data` names the text, which slices may share."""
    rows = table.sort_by("block")
    ids = list(map(str, rows["block"].to_pylist()))
    sources = [] if data is None else [[f"{data} {block}" for block in ids]]
    layout = Layout(len(ids), sources=sources, is_text=True)
    return units_of(tier, ids, layout, columns_of_blocks(rows), positions=positions_of(rows))


def question_units(
    tier: Tier, table: pa.Table, questions: Questions, primary: Normalization
) -> Units:
    """Return a task's questions with credits by every way of comparing candidates, and measures.

    Credits by the primary one have the headline's name, the others `<headline>_<name>`.
    """
    credits: dict[str, Floats] = {}
    if questions.kind == "ranked":
        credits = {
            tier.headline_by(name, primary): outcome.credit
            for name, outcome in questions.outcomes.items()
        }
    ids = table["item"].take(questions.groups.starts).to_pylist()
    return units_of(tier, ids, questions.layout, {**credits, **questions.measures})


def probe_units(tier: Tier, rows: Sequence[PromptRow], rates: Iterable[str] = RATES) -> ByItem:
    """Return the prompts of each category, and under None those of the headline."""
    names = dict.fromkeys(row["category"] for row in rows)
    members = {name: [row for row in rows if row["category"] == name] for name in names}
    counted = [row for row in rows if row["headline"]]
    return {name: _rated(tier, own, [*rates]) for name, own in {None: counted, **members}.items()}


def by_headline(tier: Tier, units: ByItem) -> ByItem:
    """Return the units of the headline, and those of categories, which have the headline alone."""
    return {
        name: own
        if name is None
        else replace(own, measured={tier.headline: own.measured[tier.headline]})
        for name, own in units.items()
    }


def _rated(tier: Tier, rows: Sequence[PromptRow], rates: Sequence[str]) -> Units:
    columns = {rate: floats(outcome(row, rate) for row in rows) for rate in rates}
    return units_of(tier, [row["id"] for row in rows], Layout(len(rows)), columns)


def floats(values: Iterable[float | None]) -> Floats:
    """Return numbers; NaN where there is none."""
    return np.array([np.nan if one is None else one for one in values], np.float64)


def units_of_files(tier: Tier, content: Mapping[str, Any], folder: Path) -> ByItem:
    """Return the units of a summary and of the items file beside it, as an external program wrote them.

    There are none without an items file. Raises ResultsError where one of the two cannot be used.

    Args:
        content: The summary, which may not be written yet.
    """
    text, model = json.dumps(content), models_of(tier.name).file
    file = parse_model(folder / tier.summary_file, text, model, COLLECT_AGAIN)
    if isinstance(file, Tier4File):  # its items file holds only texts
        rates = [rate for rate in RATES if file.summary.rates.get(rate) is not None]
        prompts = [*map(_as_row, file.prompts or ())]
        return by_headline(tier, probe_units(tier, prompts, rates)) if prompts else {}
    path = folder / tier.items_file
    if not path.exists():
        return {}
    if tier.items_file == tier.units_file:
        return read_units(tier, path, file.sequence_length)
    table, units = read_table(path, _COLUMNS[tier.name], COLLECT_AGAIN), dict[str | None, Units]()
    for name, entry in getattr(file, tier.section).items():
        rows = rows_of(table, tier.item, name, path, COLLECT_AGAIN)
        try:
            units[name] = _item_units(tier, entry, rows)
        except ScoringError as error:
            raise unusable(path, f"{name!r}: {error}") from None
    return units


_COLUMNS = {"tier2": BLOCKS, "tier3": CANDIDATES}
"""Columns of the items files of external programs."""


def _item_units(tier: Tier, entry: SliceEntry | TaskEntry, rows: pa.Table) -> Units:
    if isinstance(entry, SliceEntry):
        for key in (NATS, TOKENS):
            if key in rows.column_names and len(pc.unique(pc.list_value_length(rows[key]))) > 1:
                raise ScoringError("its losses or tokens by position are not those of its blocks")
        return block_units(tier, rows, entry.data_checksum)
    primary: Normalization = entry.primary or "raw"
    return question_units(tier, rows, measure_questions(rows, entry.kind), primary)


def _as_row(prompt: PromptEntry) -> PromptRow:
    checks = [{"kind": check.kind, "passed": check.passed} for check in prompt.checks.values()]
    return {**dict(prompt), "checks": checks}


def write_units(tier: Tier, folder: Path, units: ByItem) -> list[Path]:
    """Write the table of a tier's units, if there are any; return its path."""
    path = folder / tier.units_file
    if not units:
        path.unlink(missing_ok=True)  # of other results
        return []
    write_parquet(path, units_table(tier, units))
    return [path]
