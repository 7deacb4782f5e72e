"""A long table as `reporting/table.py` makes it, drawn at random, for tests of charts and pages."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

HEADLINES = {
    "tier2": ("nats_per_token", "nats per token", False),
    "tier3": ("acc", "fraction", True),
    "tier4": ("all_checks_pass_rate", "fraction", True),
}


def long_table(
    steps: Sequence[int] = (10, 20, 30), items: int = 3, *, stage: str = "second", seed: int = 0
) -> pd.DataFrame:
    """Rows of every tier's items, their mean first, for the steps and then the bridge."""
    random, rows = np.random.default_rng(seed), list[dict[str, Any]]()
    for step in (*steps, None):
        about: dict[str, Any] = {"stage": stage, "step": step, "deleted": False, "note": None}
        about |= {"checkpoint": "bridge" if step is None else f"step {step}"}
        about |= {"role": "bridge" if step is None else "step", "verdict": None}
        about |= {"tokens": step and step * 1000, "tokens_before": 5000, "position": None}
        for tier, (metric, unit, up) in HEADLINES.items():
            for item in ("overall", *(f"{tier}_{n}" for n in range(items))):
                value = float(random.uniform(0.3, 0.6)) + (0 if up else 2)
                row = {"tier": tier, "item": item, "group": None, "metric": metric, "unit": unit}
                row |= {"higher_is_better": up, "primary": item != "overall", "value": value}
                row |= {"low": value - 0.04, "high": value + 0.04, "n": 200}
                row |= {"chance": 0.25 if tier == "tier3" else None}
                rows.append(about | row | _delta(random, step is not None))
    return pd.DataFrame(rows)


def _delta(random: np.random.Generator, is_compared: bool) -> dict[str, Any]:
    names = (
        "against",
        "delta",
        "delta_low",
        "delta_high",
        "p",
        "p_holm",
        "mde",
        "flag",
        "gained",
        "lost",
    )
    if not is_compared:
        return dict.fromkeys(names)
    delta = float(random.normal(0, 0.05))
    flag = "unclear" if abs(delta) < 0.04 else "better" if delta > 0 else "worse"
    values = ("first/100", delta, delta - 0.04, delta + 0.04, 0.02, 0.1, 0.05, flag, 12, 9)
    return dict(zip(names, values, strict=True))
