"""Read Tier5's files as items: each task's prompts with their pass rates, one per verifier."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.metrics.rates import TRUNCATED
from evaluation.results.answer_files import GenerationEntry, Tier5File
from evaluation.results.columns import rows_of
from evaluation.results.files import SCORE_AGAIN, unusable
from evaluation.results.kinds import CreditItem, Credits, Items, SecondaryMetrics
from evaluation.settings.tiers import Tier

if TYPE_CHECKING:
    import pyarrow as pa

Rows = list[dict[str, Any]]


def completed_items(tier: Tier, file: Tier5File, table: "pa.Table | None", path: Path) -> Items:
    """Return the items of Tier5's files.

    Args:
        table: Rows of its per-item file; None where an external program wrote none.
        path: The per-item file, for messages.

    Raises:
        ResultsError: The two files do not agree.
    """
    tasks = file.generation_tasks.items()
    return Items(items={name: _item(tier, name, entry, table, path) for name, entry in tasks})


def _item(
    tier: Tier, name: str, entry: GenerationEntry, table: "pa.Table | None", path: Path
) -> CreditItem:
    rows: Rows = []
    if table is not None:
        rows = rows_of(table, "task", name, path, SCORE_AGAIN).to_pylist()
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
    return CreditItem(
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
        credits=_task_credits(tier, rows, name, entry, path) if rows else {},
        secondary=_secondary(tier, [row for row in rows if row["verifier"] == entry.primary]),
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


def _task_credits(
    tier: Tier, rows: Rows, name: str, entry: GenerationEntry, path: Path
) -> dict[str, Credits]:
    """Return the credits by metric, the headline first."""
    views: dict[str, Rows] = {view: [] for view in entry.verifiers}
    for row in rows:
        if row["verifier"] not in views:
            is_other = f"{row['verifier']!r}, which is none of its verifiers"
            raise unusable(path, f"{name!r} has rows of {is_other}")
        views[row["verifier"]].append(row)
    by_metric = {_metric(tier, entry, v): _credits(name, part, path) for v, part in views.items()}
    first = by_metric.pop(tier.headline)
    ids = tuple(row["id"] for row in views[entry.primary])
    shares = [row["truncated"] / (row["n"] + row["errors"]) for row in views[entry.primary]]
    truncated = Credits(ids=ids, credit=np.asarray(shares, dtype=np.float64))
    return {tier.headline: first, **by_metric, TRUNCATED: truncated}


def _secondary(tier: Tier, rows: Rows) -> SecondaryMetrics | None:
    """Return the metrics of all prompts that do not depend on verdicts; None where none is stored."""
    values = {
        metric.name: np.asarray([row[metric.name] for row in rows], dtype=np.float64)
        for metric in tier.secondary
        if rows and all(row.get(metric.name) is not None for row in rows)
    }
    return SecondaryMetrics(values=values, **_about(rows)) if values else None


def _about(rows: Rows) -> dict[str, Any]:
    """Return the ids of prompts, and how they depend on one another."""
    return {
        "ids": tuple(row["id"] for row in rows),
        "clusters": _clusters(rows),
        "strata": _strata(rows),
        "sources": [[row.get(key) for row in rows] for key in ("question", "row")],
    }


def _credits(name: str, rows: Rows, path: Path) -> Credits:
    ids = [row["id"] for row in rows]
    if not rows or len(set(ids)) < len(ids):
        raise unusable(path, f"a prompt of {name!r} is missing or appears twice for a verifier")
    known = [row for row in rows if row["pass_rate"] is not None]
    credit = np.asarray([row["pass_rate"] for row in known], dtype=np.float64)
    if ((credit < 0) | (credit > 1)).any():
        raise unusable(path, f"a mean score of {name!r} is not in [0, 1]")
    return Credits(
        credit=credit,
        **_about(known),
        excluded={r["id"]: i for i, r in enumerate(rows) if r["pass_rate"] is None},
    )


def _clusters(rows: Rows) -> list[str] | None:
    names = [row.get("cluster") for row in rows]
    return None if not names or None in names else [str(name) for name in names]


def _strata(rows: Rows) -> tuple[str, ...] | None:
    """Return the first grouping of the task; a finer one would leave too few prompts in a group."""
    groups: list[Mapping[str, str]] = [json.loads(row["strata"]) for row in rows]
    if not groups or not all(groups):
        return None
    return tuple(next(iter(one.values())) for one in groups)
