"""Read the files of each tier as items: what was measured on each block, question or prompt.

A tier that is added to `settings.tiers` must register its reader here.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.errors import ResultsError, ScoringError
from evaluation.metrics.accuracy import (
    Groups,
    candidate_scores,
    check_items,
    credit_items,
    layout_of,
)
from evaluation.metrics.layout import Layout
from evaluation.metrics.measures import choice_measures, greedy
from evaluation.metrics.perplexity import columns_of_blocks
from evaluation.metrics.positions import NATS, TOKENS, Positions, bin_starts, positions_of
from evaluation.metrics.rates import RATES, outcome
from evaluation.metrics.ratios import Ratio, ratio_of
from evaluation.metrics.variance import Floats
from evaluation.results.answer_files import Generation, PromptEntry, Tier4File, Tier5File
from evaluation.results.columns import BLOCKS, COMPLETED, MEASURED, read_table, rows_of
from evaluation.results.completed import completed_items
from evaluation.results.files import COLLECT_AGAIN, unusable
from evaluation.results.kinds import Item, ItemReader, Items, Units
from evaluation.results.tier_files import TaskEntry, Tier2File, Tier3File, TierFile
from evaluation.settings.metric import LARGEST
from evaluation.settings.tiers import TIERS, Tier

if TYPE_CHECKING:
    import pyarrow as pa


def _slices(tier: Tier, file: Tier2File, folder: Path) -> Items:
    path = folder / tier.items_file
    table = _per_item(path, file, BLOCKS)
    items = {
        name: Item(
            group=entry.group,
            values=entry.values,
            same={"data": entry.data_checksum, "attention": entry.attention or file.attention},
            entry=entry,
            units=None
            if table is None
            else _blocks(tier, table, name, path, file.sequence_length, entry.data_checksum),
        )
        for name, entry in file.slices.items()
    }
    return _agreeing(path, tier, file, Items(items=items))


def _agreeing(path: Path, tier: Tier, file: TierFile, content: Items) -> Items:
    """Return the items; raise ResultsError where rows of a table do not give the headline of the summary.

    A page shows numbers of both files, so it would contradict itself if one of them was changed by hand
    or copied without the other. Files of external programs are not checked.
    """
    for name, item in content.items.items():
        headline = tier.headline_of(item.values)
        if headline not in item.measured:
            continue
        mean, stated = item.measured[headline].value, item.values[headline]
        is_near = math.isclose(mean, stated, rel_tol=1e-6, abs_tol=1e-9)
        if file.is_external or is_near:
            continue
        raise ResultsError(
            f"{path}: the rows of {name!r} give a mean of {mean:.7g}, and {tier.summary_file} says "
            f"{stated:.7g}; the two are not of one scoring: remove both and {COLLECT_AGAIN}"
        )
    return content


def _per_item(path: Path, file: TierFile, columns: Any) -> "pa.Table | None":
    """Return a per-item table; None where an external program wrote none."""
    if file.is_external and not path.exists():
        return None
    return read_table(path, columns, COLLECT_AGAIN)


def _blocks(
    tier: Tier, table: "pa.Table", name: str, path: Path, length: int, data: object
) -> Units:
    """Return a slice's blocks in the order of their numbers; raise ResultsError.

    `data` identifies the text, which two slices may share.
    """
    rows = rows_of(table, "slice", name, path, COLLECT_AGAIN).sort_by("block")
    columns = {column: rows[column].to_numpy() for column in ("block", "nats", "tokens", "bytes")}
    ids: list[int] = columns["block"].astype(np.int64).tolist()
    if len({*ids}) < len(ids):
        raise unusable(path, f"a block of {name!r} appears twice")
    if columns["tokens"].min() < 0 or columns["bytes"].min() < 0 or not columns["tokens"].any():
        raise unusable(path, f"{name!r} has no scored token, or less than none")
    if not 0 <= columns["nats"].sum() <= LARGEST * columns["tokens"].sum():
        raise unusable(path, f"the losses of {name!r} give no perplexity")
    sums = columns_of_blocks(rows)
    ratios = {metric.name: ratio_of(metric, sums) for metric in tier.metrics}
    sources = [] if data is None else [[f"{data} {block}" for block in ids]]
    return Units(
        ids=ids,
        layout=Layout(len(ids), sources=sources, is_text=True),
        measured={metric: ratio for metric, ratio in ratios.items() if ratio is not None},
        sums=sums,
        positions=_positions(rows, name, path, length),
    )


def _positions(rows: "pa.Table", name: str, path: Path, length: int) -> Positions | None:
    """Return blocks' nats and tokens by position; raise ResultsError where they do not add up to the blocks'."""
    import pyarrow.compute as pc

    lists = [rows[key] for key in (NATS, TOKENS) if key in rows.column_names]
    sizes = {size for one in lists for size in pc.list_value_length(one).unique().to_pylist()}
    if sizes <= {None}:
        return None
    is_whole = len(lists) == 2 and sizes == {len(bin_starts(length))}
    positions = positions_of(rows) if is_whole else None
    if positions is None or not _adds_up(positions, rows):
        what = f"the losses or tokens of {name!r} by position are not those of its blocks"
        raise unusable(path, what)
    return positions


def _adds_up(bins: Positions, rows: "pa.Table") -> bool:
    nats, tokens = (rows[key].to_numpy() for key in ("nats", "tokens"))
    is_near = np.allclose(bins.nats.sum(axis=1), nats, rtol=1e-6, atol=1e-9)
    return bool(is_near and bins.tokens.min() >= 0 and (bins.tokens.sum(axis=1) == tokens).all())


def _tasks(tier: Tier, file: Tier3File, folder: Path) -> Items:
    path = folder / tier.items_file
    table = _per_item(path, file, MEASURED)
    items = {name: _task(tier, name, entry, table, path) for name, entry in file.tasks.items()}
    return _agreeing(path, tier, file, Items(items=items))


def _task(tier: Tier, name: str, entry: TaskEntry, table: "pa.Table | None", path: Path) -> Item:
    """Return a task with its credits and measures, computed from its log-probabilities again."""
    item = Item(
        group=entry.group,
        values=entry.values,
        same={"data": entry.data_checksum, "primary metric": entry.primary},
        entry=entry,
        chance=entry.chance,
    )
    if table is None:
        return item
    rows = rows_of(table, "task", name, path, COLLECT_AGAIN)
    with _named(path, name):
        groups = check_items(rows, entry.kind)
    measured = _task_credits(tier, name, entry, rows, groups, path)
    with _named(path, name):
        measured |= choice_measures(rows, entry.kind)
    units = Units(
        ids=tuple(rows["item"].take(groups.starts).to_pylist()),
        layout=layout_of(rows, groups),
        measured={metric: Ratio(amounts) for metric, amounts in measured.items()},
    )
    return replace(item, units=units, rows=rows)


def _task_credits(
    tier: Tier, name: str, entry: TaskEntry, rows: "pa.Table", groups: Groups, path: Path
) -> dict[str, Floats]:
    """Return the credits by every normalization, by the scorer's own rules.

    The primary metric's have the headline's name, the others `<headline>_<metric>`. Where only right
    answers are scored, the credit is whether they are greedy.
    """
    gold = rows["gold"].to_numpy(zero_copy_only=False)
    if not np.logical_or.reduceat(gold, groups.starts).all():
        raise unusable(path, f"a question of {name!r} has no right candidate")
    with _named(path, name):
        scores = candidate_scores(rows)
        if entry.kind == "gold":
            return {"greedy": greedy(rows)}
    by_metric = {key: credit_items(score, gold, groups).credit for key, score in scores.items()}
    primary = entry.primary or "raw"
    if primary not in by_metric:
        raise ResultsError(
            f"{path}: {name!r} has no unconditional log-probabilities, which the primary metric "
            f"{primary} in {tier.summary_file} needs; remove both and {COLLECT_AGAIN}"
        )
    others = {f"{tier.headline}_{key}": one for key, one in by_metric.items() if key != primary}
    return {tier.headline: by_metric[primary], **others}


@contextlib.contextmanager
def _named(path: Path, name: str) -> Iterator[None]:
    """Turn an error in a table's rows into one that names their file and item."""
    try:
        yield
    except ScoringError as error:
        raise unusable(path, f"{name!r}: {error}") from None


def _probes(tier: Tier, file: Tier4File, folder: Path) -> Items:
    del folder  # the per-item file holds only texts
    prompts = file.prompts or ()
    counted = [prompt for prompt in prompts if prompt.headline]
    known = {rate: value for rate, value in file.summary.rates.items() if value is not None}
    units = _prompts(counted, [rate for rate in known if rate in RATES])
    overall = Item(group=None, values=known, same={}, entry=file.summary, units=units)
    by_category = file.by_category or {}
    names = dict.fromkeys([*by_category, *(prompt.category for prompt in prompts)])
    items = {}
    for name in names:
        entry = by_category.get(name)
        units = _prompts([prompt for prompt in prompts if prompt.category == name], [tier.headline])
        value = entry.rates.get(tier.headline) if entry else None
        if value is None and units.measured:
            value = units.measured[tier.headline].value
        if value is not None:
            items[name] = Item(
                group=name,
                values={tier.headline: value},
                same={},
                entry=entry or file.summary,
                units=units,
                size=entry.prompts if entry else None,
            )
    return Items(items=items, overall=overall, same={"prompts": file.data_checksum})


def _completed(tier: Tier, file: Tier5File, folder: Path) -> Items:
    path = folder / tier.items_file
    table = _per_item(path, file, COMPLETED)
    return _agreeing(path, tier, file, completed_items(tier, file, table, path))


def _prompts(prompts: Sequence[PromptEntry], rates: Sequence[str]) -> Units:
    """Return prompts with what they contribute to each rate: NaN to those that they do not count for."""
    outcomes = {rate: [_outcome(prompt, rate) for prompt in prompts] for rate in rates}
    measured = {
        rate: Ratio(np.array([np.nan if one is None else one for one in passed], dtype=np.float64))
        for rate, passed in outcomes.items()
        if any(one is not None for one in passed)
    }
    ids = tuple(prompt.id for prompt in prompts)
    return Units(ids=ids, layout=Layout(len(ids)), measured=measured)


def _outcome(prompt: PromptEntry, rate: str) -> bool | None:
    checks = [{"kind": check.kind, "passed": check.passed} for check in prompt.checks.values()]
    return outcome({"stop_reason": prompt.stop_reason, "checks": checks}, rate)


ITEM_READERS: dict[str, ItemReader] = {
    "tier2": ItemReader(Tier2File, BLOCKS, _slices),
    "tier3": ItemReader(Tier3File, MEASURED, _tasks),
    "tier4": ItemReader(Tier4File, Generation, _probes),
    "tier5": ItemReader(Tier5File, COMPLETED, _completed),
}


def reader_of(name: str) -> ItemReader:
    """Return the reader of a tier's files, which must be registered; raise ResultsError."""
    if name not in ITEM_READERS:
        raise ResultsError(
            f"{name}: nothing reads its {TIERS[name].summary_file}; register a reader in "
            "evaluation/results/items.py, ITEM_READERS"
        )
    return ITEM_READERS[name]
