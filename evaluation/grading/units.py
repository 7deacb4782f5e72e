"""What blocks, questions and prompts contribute to each metric, by the stored scores and answers."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from evaluation.metrics.rates import RATES, TRUNCATED, PromptRow, outcome
from evaluation.metrics.variance import Floats
from evaluation.results.columns import BLOCKS, CANDIDATES, COMPLETED, Column, read_table, rows_of
from evaluation.results.files import COLLECT_AGAIN, parse_model, unusable
from evaluation.results.items import models_of
from evaluation.results.kinds import Units, units_of
from evaluation.results.probe_files import PromptEntry, Tier4File
from evaluation.results.tier_files import SliceEntry, TaskEntry, TierFile
from evaluation.results.units_file import SOURCES, ByItem, units_table
from evaluation.results.verified_files import GenerationEntry
from evaluation.settings.sources import Normalization
from evaluation.settings.tiers import Tier

Rows = Sequence[Mapping[str, Any]]


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
    columns = {rate: _floats(outcome(row, rate) for row in rows) for rate in rates}
    return units_of(tier, [row["id"] for row in rows], Layout(len(rows)), columns)


def prompt_units(tier: Tier, rows: Rows, views: Iterable[str], primary: str) -> Units:
    """Return a task's prompts, with pass rates by each verifier and what does not depend on verdicts.

    Raises:
        ScoringError: A row is of another verifier, or a verifier lacks a prompt.
    """
    by_view: dict[str, list[Mapping[str, Any]]] = {view: [] for view in views}
    for row in rows:
        if row["verifier"] not in by_view:
            raise ScoringError(
                f"it has rows of {row['verifier']!r}, which is none of its verifiers"
            )
        by_view[row["verifier"]].append(row)
    prompts = by_view[primary]
    ids = [row["id"] for row in prompts]
    if len({*ids}) < len(ids) or any([r["id"] for r in own] != ids for own in by_view.values()):
        raise ScoringError("a prompt is missing or appears twice for a verifier")
    columns = {
        tier.headline_by(view, primary): _column(own, "pass_rate") for view, own in by_view.items()
    }
    counts = [(row["truncated"], row["n"] + row["errors"]) for row in prompts]
    columns[TRUNCATED] = _floats(part / samples if samples else None for part, samples in counts)
    more = {metric.name: _column(prompts, metric.name) for metric in tier.secondary}
    columns |= {name: values for name, values in more.items() if np.isfinite(values).all()}
    groups: list[Mapping[str, str]] = [json.loads(row["strata"]) for row in prompts]
    groupings: dict[str, dict[str, str]] = {}
    for id, own in zip(ids, groups, strict=True):
        for by, group in own.items():
            groupings.setdefault(by, {})[id] = group
    # A finer grouping than the first one would leave too few prompts in a group.
    strata = [next(iter(own.values())) for own in groups] if all(groups) else None
    known = [str(row["cluster"]) for row in prompts if row.get("cluster") is not None]
    clusters = known if len(known) == len(prompts) else None
    sources = [[row.get(key) for row in prompts] for key in SOURCES]
    layout = Layout(len(ids), clusters, strata, sources)
    return units_of(tier, ids, layout, columns, groupings=groupings)


def _column(rows: Rows, key: str) -> Floats:
    return _floats(row.get(key) for row in rows)


def _floats(values: Iterable[float | None]) -> Floats:
    """Return numbers; NaN where there is none."""
    return np.array([np.nan if one is None else one for one in values], np.float64)


# Of files that an external program wrote: the same from what these hold.


def _slice(tier: Tier, entry: SliceEntry, rows: pa.Table) -> Units:
    for key in (NATS, TOKENS):
        if key in rows.column_names and len(pc.unique(pc.list_value_length(rows[key]))) > 1:
            raise ScoringError("its losses or tokens by position are not those of its blocks")
    return block_units(tier, rows, entry.data_checksum)


def _task(tier: Tier, entry: TaskEntry, rows: pa.Table) -> Units:
    primary: Normalization = entry.primary or "raw"
    questions = measure_questions(rows, entry.kind)
    return question_units(tier, rows, questions, primary)


def _completed(tier: Tier, entry: GenerationEntry, rows: pa.Table) -> Units:
    return prompt_units(tier, rows.to_pylist(), entry.verifiers, entry.primary)


def _by_item(
    columns: Sequence[Column], of_item: Callable[[Tier, Any, pa.Table], Units]
) -> "UnitReader":
    def read(tier: Tier, file: TierFile, path: Path) -> ByItem:
        if not path.exists():
            return {}
        table = read_table(path, columns, COLLECT_AGAIN)
        entries: Mapping[str, Any] = getattr(file, tier.section)
        units: dict[str | None, Units] = {}
        for name, entry in entries.items():
            rows = rows_of(table, tier.item, name, path, COLLECT_AGAIN)
            try:
                units[name] = of_item(tier, entry, rows)
            except ScoringError as error:
                raise unusable(path, f"{name!r}: {error}") from None
        return units

    return read


def _probes(tier: Tier, file: TierFile, path: Path) -> ByItem:
    del path  # the items file holds only texts
    assert isinstance(file, Tier4File)
    rates = [rate for rate in RATES if file.summary.rates.get(rate) is not None]
    rows = [*map(_as_row, file.prompts or ())]
    return by_headline(tier, probe_units(tier, rows, rates)) if rows else {}


def _as_row(prompt: PromptEntry) -> PromptRow:
    checks = [{"kind": check.kind, "passed": check.passed} for check in prompt.checks.values()]
    return {**dict(prompt), "checks": checks}


UnitReader = Callable[[Tier, TierFile, Path], ByItem]

UNIT_READERS: Mapping[str, UnitReader] = {
    "tier2": _by_item(BLOCKS, _slice),
    "tier3": _by_item(CANDIDATES, _task),
    "tier4": _probes,
    "tier5": _by_item(COMPLETED, _completed),
}
"""Functions that make units of files of the tiers that external programs may score."""


def write_units(tier: Tier, folder: Path, units: ByItem) -> list[Path]:
    """Write the table of a tier's units, if there are any; return its path."""
    path = folder / tier.units_file
    if not units:
        path.unlink(missing_ok=True)  # of other results
        return []
    write_parquet(path, units_table(tier, units))
    return [path]


def units_of_files(tier: Tier, content: Mapping[str, Any], folder: Path) -> ByItem:
    """Return the units of a summary and of the items file beside it, if any; raise ResultsError.

    Args:
        content: The summary, which may not be written yet.
    """
    path, text = folder / tier.summary_file, json.dumps(content)
    file = parse_model(path, text, models_of(tier.name).file, COLLECT_AGAIN)
    read = UNIT_READERS.get(tier.name)
    return {} if read is None else read(tier, file, folder / tier.items_file)
