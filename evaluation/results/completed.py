"""Read Tier5's files as items: each task's prompts with their pass rates, one per verifier."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.metrics.layout import Layout
from evaluation.metrics.rates import TRUNCATED
from evaluation.metrics.ratios import Ratio
from evaluation.metrics.variance import Floats
from evaluation.results.answer_files import GenerationEntry, Tier5File
from evaluation.results.columns import rows_of
from evaluation.results.files import COLLECT_AGAIN, unusable
from evaluation.results.kinds import Item, Items, Units
from evaluation.settings.tiers import Tier

if TYPE_CHECKING:
    import pyarrow as pa

Rows = list[dict[str, Any]]


def completed_items(tier: Tier, file: Tier5File, table: "pa.Table | None", path: Path) -> Items:
    """Return the items of Tier5's files, of which external programs may write no table; raise ResultsError."""
    tasks = file.generation_tasks.items()
    return Items(items={name: _item(tier, name, entry, table, path) for name, entry in tasks})


def _item(
    tier: Tier, name: str, entry: GenerationEntry, table: "pa.Table | None", path: Path
) -> Item:
    rows: Rows = []
    if table is not None:
        rows = rows_of(table, "task", name, path, COLLECT_AGAIN).to_pylist()
    rates = {_metric(tier, entry, view): verifier for view, verifier in entry.verifiers.items()}
    values = {metric: rate.pass_rate for metric, rate in rates.items()}
    described = (metric for metric in tier.metrics if not metric.is_secondary)
    for metric in described:
        if (value := getattr(entry, metric.key, None)) is not None:
            values[metric.name] = value
    groupings: dict[str, dict[str, str]] = {}
    for row in rows:
        for grouping, group in json.loads(row["strata"]).items():
            groupings.setdefault(grouping, {})[row["id"]] = group
    return Item(
        group=entry.group,
        values={tier.headline: values.pop(tier.headline), **values},
        same={
            "data": entry.data_checksum,
            "primary verifier": entry.primary,
            "verifiers": entry.views,
            "answer_after": entry.answer_after,
            "decoding": {key: v for key, v in entry.decoding.items() if key != "engine"},
        },
        entry=entry,
        units=_prompts(tier, rows, name, entry, path) if rows else None,
        groupings=groupings,
        bounds={
            metric: (rate.low, rate.high)
            for metric, rate in rates.items()
            if rate.low is not None and rate.high is not None
        },
    )


def _metric(tier: Tier, entry: GenerationEntry, view: str) -> str:
    """Return the primary verifier's rate under the headline's name, the others as `<headline>_<verifier>`."""
    return tier.headline if view == entry.primary else f"{tier.headline}_{view}"


def _prompts(tier: Tier, rows: Rows, name: str, entry: GenerationEntry, path: Path) -> Units:
    """Return a task's prompts, with pass rates by each verifier and what does not depend on verdicts."""
    views: dict[str, Rows] = {view: [] for view in entry.verifiers}
    for row in rows:
        if row["verifier"] not in views:
            is_other = f"{row['verifier']!r}, which is none of its verifiers"
            raise unusable(path, f"{name!r} has rows of {is_other}")
        views[row["verifier"]].append(row)
    prompts = views[entry.primary]
    ids = tuple(row["id"] for row in prompts)
    if len({*ids}) < len(ids) or any(
        [row["id"] for row in own] != [*ids] for own in views.values()
    ):
        raise unusable(path, f"a prompt of {name!r} is missing or appears twice for a verifier")
    rates = {_metric(tier, entry, view): _column(own, "pass_rate") for view, own in views.items()}
    if any(((rate < 0) | (rate > 1)).any() for rate in rates.values()):
        raise unusable(path, f"a mean score of {name!r} is not in [0, 1]")
    shares = [row["truncated"] / (row["n"] + row["errors"]) for row in prompts]
    rates = {tier.headline: rates.pop(tier.headline), **rates, TRUNCATED: np.array(shares)}
    more = {one.name: _column(prompts, one.name) for one in tier.secondary}
    rates |= {metric: values for metric, values in more.items() if np.isfinite(values).all()}
    sources = [[row.get(key) for row in prompts] for key in ("question", "row")]
    layout = Layout(len(ids), _clusters(prompts), _strata(prompts), sources)
    return Units(ids=ids, layout=layout, measured={key: Ratio(rate) for key, rate in rates.items()})


def _column(rows: Rows, key: str) -> Floats:
    """Return a number of each row; NaN where there is none."""
    return np.array([np.nan if row.get(key) is None else row[key] for row in rows], np.float64)


def _clusters(rows: Rows) -> list[str] | None:
    names = [row.get("cluster") for row in rows]
    return None if not names or None in names else [str(name) for name in names]


def _strata(rows: Rows) -> tuple[str, ...] | None:
    """Return the first grouping of the task; a finer one would leave too few prompts in a group."""
    groups: list[Mapping[str, str]] = [json.loads(row["strata"]) for row in rows]
    if not groups or not all(groups):
        return None
    return tuple(next(iter(one.values())) for one in groups)
