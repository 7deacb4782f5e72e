"""The long table of a stage from its results: values, each with the delta that the step's file has for it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.subjects import bridge_subject
from evaluation.checkpoints.training import consumed_tokens
from evaluation.errors import EvaluationError
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.results.deltas_file import StepDeltas
from evaluation.results.table import TABLE_COLUMNS, TableRows, delta_columns
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

_NAMES = tuple(TABLE_COLUMNS)


def stage_rows(
    stage: StageResults,
    plans: Mapping[str, StagePlan],
    deltas: Mapping[int, StepDeltas],
    verdicts: Mapping[int, str | None],
) -> TableRows:
    """Return the rows of a stage's table, the bridge's last, those about positions after the others.

    Args:
        deltas: The deltas of compared steps.
        verdicts: The stage's verdicts on them, corrected for the choice among steps.
    """
    before = {"tokens_before": tokens_before(stage, plans)}
    rows: TableRows = []
    for step, scored in stage.steps.items():
        about = {
            **before,
            "checkpoint": stage.plan.label(step),
            "role": "step",
            "verdict": verdicts.get(step),
            "deleted": configuration_file(stage.plan.checkpoint(step)) is None,
        }
        rows += _rows(stage.plan, scored, deltas.get(step), about)
    if stage.bridge is not None:
        is_deleted = configuration_file(Path(stage.bridge.header.checkpoint)) is None
        about = {**before, "checkpoint": "bridge", "role": "bridge", "deleted": is_deleted}
        rows += _rows(stage.plan, stage.bridge, None, about)
    return sorted(rows, key=lambda row: row["position"] is not None)


def _rows(
    plan: StagePlan, scored: Scored, deltas: StepDeltas | None, about: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    header = scored.header
    about = {"stage": plan.name, "step": header.step, "tokens": header.consumed_tokens, **about}
    known = dict(_by_key(deltas)) if deltas else {}
    for value in (*scored.values, *scored.positions):
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


def tokens_before(stage: StageResults, plans: Mapping[str, StagePlan]) -> int | None:
    """Return the tokens that were trained on before the stage; None where a checkpoint does not tell.

    Where the stage's checkpoints count on from the bridge's step and tokens, these are the tokens before
    the bridge's stage.
    """
    bridge = stage.bridge.header if stage.bridge else None
    if stage.plan.stage.bridge is None:
        return 0
    if bridge is None or bridge.consumed_tokens is None:
        return None
    headers = [scored.header for scored in stage.steps.values()]
    counts_on = bool(headers) and all(
        (header.step or 0) > (bridge.step or 0)
        and (header.consumed_tokens or 0) > (bridge.consumed_tokens or 0)
        for header in headers
    )
    earlier = _tokens_before_bridge(stage.plan, plans, seen=(stage.plan.name,))
    if earlier is None:
        return None
    return earlier if counts_on else earlier + bridge.consumed_tokens


def _tokens_before_bridge(
    plan: StagePlan, plans: Mapping[str, StagePlan], seen: tuple[str, ...]
) -> int | None:
    """Return the tokens before the stage that a stage's bridge belongs to, by what checkpoints tell."""
    owner = plan.stage.bridge.stage if plan.stage.bridge else None
    if owner is None or owner not in plans or owner in seen:
        return 0
    if plans[owner].stage.bridge is None:
        return 0
    try:
        tokens = consumed_tokens(bridge_subject(plans[owner], plans).checkpoint)
    except (EvaluationError, OSError):
        return None
    earlier = _tokens_before_bridge(plans[owner], plans, (*seen, owner))
    return None if tokens is None or earlier is None else earlier + tokens
