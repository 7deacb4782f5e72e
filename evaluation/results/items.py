"""Read the files of each tier as items of one of two kinds: slices with losses, tasks with credits.

A tier that is added to `settings.tiers` must register its reader here.
"""

import contextlib
import math
from collections.abc import Iterator
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
from evaluation.metrics.measures import choice_measures, greedy
from evaluation.metrics.perplexity import columns_of_blocks
from evaluation.metrics.positions import NATS, TOKENS, Positions, bin_starts, positions_of
from evaluation.metrics.rates import RATES, outcome
from evaluation.metrics.variance import Floats
from evaluation.results.answer_files import Generation, PromptEntry, Tier4File, Tier5File
from evaluation.results.columns import BLOCKS, COMPLETED, MEASURED, read_table, rows_of
from evaluation.results.completed import completed_items
from evaluation.results.files import SCORE_AGAIN, unusable
from evaluation.results.kinds import (
    Blocks,
    CreditItem,
    Credits,
    Item,
    ItemReader,
    Items,
    NatsItem,
    SecondaryMetrics,
)
from evaluation.results.tier_files import TaskEntry, Tier2File, Tier3File, TierFile
from evaluation.settings.metric import LARGEST
from evaluation.settings.tiers import TIERS, Tier

if TYPE_CHECKING:
    import pyarrow as pa


def _slices(tier: Tier, file: Tier2File, folder: Path) -> Items:
    path = folder / tier.items_file
    table = _per_item(path, file, BLOCKS)
    items = {
        name: NatsItem(
            group=entry.group,
            values=entry.values,
            same={"data": entry.data_checksum, "attention": entry.attention or file.attention},
            entry=entry,
            blocks=None
            if table is None
            else replace(
                _read_blocks(table, name, path, file.sequence_length),
                data=None if entry.data_checksum is None else str(entry.data_checksum),
            ),
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
        mean, stated = _mean_of_rows(item, headline), item.values[headline]
        if (
            mean is None
            or file.is_external
            or math.isclose(mean, stated, rel_tol=1e-6, abs_tol=1e-9)
        ):
            continue
        raise ResultsError(
            f"{path}: the rows of {name!r} give a mean of {mean:.7g}, and {tier.summary_file} says "
            f"{stated:.7g}; the two are not of one scoring: remove both and {SCORE_AGAIN}"
        )
    return content


def _mean_of_rows(item: Item, headline: str) -> float | None:
    if isinstance(item, NatsItem):
        blocks = item.blocks
        return None if blocks is None else float(blocks.nats.sum() / blocks.tokens.sum())
    if headline in item.credits:
        return float(item.credits[headline].credit.mean())
    return float(item.secondary.values[headline].mean()) if item.secondary else None


def _per_item(path: Path, file: TierFile, columns: Any) -> "pa.Table | None":
    """Return a per-item table; None where an external program wrote none."""
    if file.is_external and not path.exists():
        return None
    return read_table(path, columns, SCORE_AGAIN)


def _read_blocks(table: "pa.Table", name: str, path: Path, length: int) -> Blocks:
    """Return a slice's blocks in the order of their numbers; raise ResultsError."""
    rows = rows_of(table, "slice", name, path, SCORE_AGAIN).sort_by("block")
    columns = {column: rows[column].to_numpy() for column in ("block", "nats", "tokens", "bytes")}
    ids = columns["block"].astype(np.int64)
    if (np.diff(ids) == 0).any():
        raise unusable(path, f"a block of {name!r} appears twice")
    if columns["tokens"].min() < 0 or columns["bytes"].min() < 0 or not columns["tokens"].any():
        raise unusable(path, f"{name!r} has no scored token, or less than none")
    if not 0 <= columns["nats"].sum() <= LARGEST * columns["tokens"].sum():
        raise unusable(path, f"the losses of {name!r} give no perplexity")
    sums = columns_of_blocks(rows)
    nats, tokens, size = (sums.pop(key) for key in ("nats", "tokens", "bytes"))
    by_position = _positions(rows, name, path, length)
    return Blocks(ids=ids, nats=nats, tokens=tokens, bytes=size, positions=by_position, more=sums)


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


def _task(
    tier: Tier, name: str, entry: TaskEntry, table: "pa.Table | None", path: Path
) -> CreditItem:
    """Return a task with its credits and measures, computed from its log-probabilities again."""
    item = CreditItem(
        group=entry.group,
        values=entry.values,
        same={"data": entry.data_checksum, "primary metric": entry.primary},
        entry=entry,
        chance=entry.chance,
    )
    if table is None:
        return item
    rows = rows_of(table, "task", name, path, SCORE_AGAIN)
    with _named(path, name):
        groups = check_items(rows, entry.kind)
    layout = layout_of(rows, groups)
    about: dict[str, Any] = {"ids": tuple(rows["item"].take(groups.starts).to_pylist())}
    about |= {key: getattr(layout, key) for key in ("clusters", "strata", "sources")}
    credits = _task_credits(tier, name, entry, rows, groups, path)
    with _named(path, name):
        values = choice_measures(rows, entry.kind)
    return replace(
        item,
        credits={metric: Credits(credit=credit, **about) for metric, credit in credits.items()},
        secondary=SecondaryMetrics(values=values, **about),
        rows=rows,
    )


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
            f"{primary} in {tier.summary_file} needs; remove both and {SCORE_AGAIN}"
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
    overall = CreditItem(
        group=None,
        values=known,
        same={},
        entry=file.summary,
        credits=_prompt_credits(counted, [rate for rate in known if rate in RATES]),
    )
    by_category = file.by_category or {}
    names = dict.fromkeys([*by_category, *(prompt.category for prompt in prompts)])
    items = {}
    for name in names:
        own = [prompt for prompt in prompts if prompt.category == name]
        entry = by_category.get(name)
        credits = _prompt_credits(own, [tier.headline])
        value = entry.rates.get(tier.headline) if entry else None
        if value is None and credits:
            value = float(credits[tier.headline].credit.mean())
        if value is not None:
            items[name] = CreditItem(
                group=name,
                values={tier.headline: value},
                same={},
                entry=entry or file.summary,
                credits=credits,
                size=entry.prompts if entry else None,
            )
    return Items(items=items, overall=overall, same={"prompts": file.data_checksum})


def _completed(tier: Tier, file: Tier5File, folder: Path) -> Items:
    path = folder / tier.items_file
    table = _per_item(path, file, COMPLETED)
    return _agreeing(path, tier, file, completed_items(tier, file, table, path))


def _prompt_credits(prompts: Any, rates: list[str]) -> dict[str, Credits]:
    """Return the credits of each rate, over the prompts that count for it."""
    by_prompt = {}
    for rate in rates:
        counted = {prompt.id: _outcome(prompt, rate) for prompt in prompts}
        passed = {name: value for name, value in counted.items() if value is not None}
        if passed:
            credit = np.asarray(list(passed.values()), dtype=np.float64)
            by_prompt[rate] = Credits(ids=tuple(passed), credit=credit)
    return by_prompt


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
    """Return the reader of a tier's files.

    Returns:
        The tier's entry of `ITEM_READERS`.

    Raises:
        ResultsError: No reader is registered for the tier.
    """
    if name not in ITEM_READERS:
        raise ResultsError(
            f"{name}: nothing reads its {TIERS[name].summary_file}; register a reader in "
            "evaluation/results/items.py, ITEM_READERS"
        )
    return ITEM_READERS[name]
