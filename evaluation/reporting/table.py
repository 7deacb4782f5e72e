"""The long table of a stage from its results: values, each with the delta that the step's file has for it."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.subjects import steps_so_far
from evaluation.errors import ResultsError
from evaluation.reporting.tables.values import position_values_of, values_of
from evaluation.results.deltas_file import StepDeltas
from evaluation.results.read import Results, TierResults, read_tier
from evaluation.results.table import TABLE_COLUMNS, TableRows, delta_columns
from evaluation.results.tier_files import read_tier_file, tiers_in
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName

_NAMES = tuple(TABLE_COLUMNS)


def stage_rows(
    plan: StagePlan,
    plans: Mapping[str, StagePlan],
    steps: Sequence[int],
    deltas: Mapping[int, StepDeltas],
    verdicts: Mapping[int, str | None],
) -> tuple[TableRows, list[str]]:
    """Return the rows of a stage's table, and a sentence for each file that cannot be used.

    The bridge's rows are the last, but for those about positions, which follow the others.

    Args:
        deltas: The deltas of compared steps.
        verdicts: The stage's verdicts on them, corrected for the choice among steps.
    """
    rows, damaged, before = TableRows(), list[str](), tokens_before(plan, plans)
    for step in steps:
        results = _readable(plan, plan.step_folder(step), plan.label(step), damaged)
        if results is not None:
            is_deleted = configuration_file(plan.checkpoint(step)) is None
            about: dict[str, Any] = {
                "role": "step",
                "verdict": verdicts.get(step),
                "deleted": is_deleted,
            }
            about |= {"checkpoint": plan.label(step), "tokens_before": before}
            rows += _rows(plan, results, deltas.get(step), about)
    if plan.stage.bridge is not None:
        bridge = _readable(plan, plan.bridge_folder, "bridge", damaged)
        if bridge is not None:
            is_deleted = configuration_file(Path(bridge.header.checkpoint)) is None
            about = {"role": "bridge", "checkpoint": "bridge", "deleted": is_deleted}
            rows += _rows(plan, bridge, None, {**about, "tokens_before": before})
    return sorted(rows, key=lambda row: row["position"] is not None), damaged


def _readable(plan: StagePlan, folder: Path, label: str, damaged: list[str]) -> Results | None:
    """Return the tiers of a checkpoint that can be read; None if there are none."""
    tiers: dict[TierName, TierResults] = {}
    for name in (name for name in plan.tiers if name in tiers_in(folder)):
        try:
            tiers[name] = read_tier(folder, name)
        except ResultsError as error:
            damaged.append(f"{label}: {error}")
    return Results(folder=folder, tiers=tiers) if tiers else None


def _rows(
    plan: StagePlan, results: Results, deltas: StepDeltas | None, about: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    header = results.header
    about = {"stage": plan.name, "step": header.step, "tokens": header.consumed_tokens, **about}
    known = dict(_by_key(deltas)) if deltas else {}
    for value in (*values_of(results), *position_values_of(results)):
        metric = TIERS[value.tier].metric(value.metric)
        row = {
            **about,
            **vars(value),
            "unit": metric.unit,
            "higher_is_better": metric.higher_is_better,
            **known.get((value.tier, value.item, value.metric, value.position), {}),
        }
        yield {name: row.get(name) for name in _NAMES}
    if deltas is not None:
        yield from (_stratum(deltas, row, about) for row in deltas.groups)


def _stratum(deltas: StepDeltas, row: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a fixed group of an item's units, such as `mmlu (stratum anatomy)`."""
    metric = TIERS[row["tier"]].head
    columns = {
        **about,
        **delta_columns(row),
        "tier": row["tier"],
        "value": row["value"],
        "item": f"{row['item']} ({row['by']} {row['group']})",
        "n": row["prompts"],
        "metric": metric.name,
        "unit": metric.unit,
        "higher_is_better": metric.higher_is_better,
        "primary": False,
        "against": "/".join(Path(deltas.bridge.path).parts[-2:]),
    }
    return {name: columns.get(name) for name in _NAMES}


Key = tuple[str, str, str, int | None]
"""Tier, item, metric, and first position of a bin."""


def _by_key(content: StepDeltas) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Yield what the table has of each delta, by tier, item, metric and position."""
    for row in content.deltas:
        key = row["tier"], row["item"], row["metric"].removeprefix("delta_"), None
        yield key, {**delta_columns(row), "against": row["bridge"]}
    bridge = "/".join(Path(content.bridge.path).parts[-2:])
    for row in content.by_position:
        key = row["tier"], row["item"], TIERS[row["tier"]].headline, row["first"]
        yield key, {**delta_columns(row), "against": bridge}


def tokens_before(
    plan: StagePlan, plans: Mapping[str, StagePlan], seen: tuple[str, ...] = ()
) -> int | None:
    """Return the tokens that were trained on before the stage; None where results do not tell.

    Where its checkpoints count on from the bridge's step and tokens, these are the tokens before the
    stage of the bridge.
    """
    if plan.stage.bridge is None:
        return 0
    owner = plans.get(plan.stage.bridge.stage or "")
    is_new = owner is not None and owner.name not in seen
    earlier = tokens_before(owner, plans, (*seen, plan.name)) if owner and is_new else 0
    bridge = _trained(plan.bridge_folder)
    if earlier is None or bridge is None:
        return None
    first = next(filter(None, map(_trained, map(plan.step_folder, steps_so_far(plan)))), None)
    counts_on = first is not None and first[0] > bridge[0] and first[1] > bridge[1]
    return earlier if counts_on else earlier + bridge[1]


def _trained(folder: Path) -> tuple[int, int] | None:
    """Return step and tokens of a scored checkpoint; None where its files do not tell the tokens."""
    for tier in tiers_in(folder):
        with contextlib.suppress(ResultsError):  # which the table's rows name
            header = read_tier_file(folder, tier)
            tokens = header.consumed_tokens
            return None if tokens is None else (header.step or 0, tokens)
    return None
