"""Deltas in long form: one row each, the same columns in JSON, CSV and the tables."""

from typing import Any

from evaluation.bridge.deltas import Delta


def delta_row(delta: Delta, stage: str, step: int | None, bridge: str) -> dict[str, Any]:
    """A delta as `results.bridge_rows.DeltaRow` has it."""
    return {"stage": stage, "step": step, "bridge": bridge, **delta_columns(delta)}


def delta_columns(delta: Delta) -> dict[str, Any]:
    """What a delta says whatever two checkpoints it is of."""
    estimate = delta.estimate
    return {
        "tier": delta.tier,
        "item": delta.item,
        "group": delta.group,
        "metric": delta.metric,
        "value": delta.value,
        "bridge_value": delta.bridge_value,
        "delta": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "p": estimate.p,
        "p_holm": delta.p_holm,
        "mde": estimate.mde,
        "n": estimate.n,
        "clusters": estimate.units,
        "want": delta.want,
        "primary": delta.primary,
        "flag": delta.flag,
        "method": estimate.method,
        "note": estimate.note,
    }
