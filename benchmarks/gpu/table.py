"""The figures of a run as a table to read."""

from collections.abc import Iterator
from typing import Any

from benchmarks.measure import columns

Row = tuple[str, str, str]

SHOWN = {
    "load.gb_per_second": "{:.1f} GB/s",
    "matmul.own_shapes": "{:.3g} FLOP/s",
    "matmul.best_shape": "{:.3g} FLOP/s",
    "compile": "{:.1f} s",
    "passes": "{:d}",
    "first_seconds": "{:.2f} s",
    "questions_per_second": "{:.1f}",
    "tokens_per_second": "{:,.0f}",
    "peak_share": "{:.0%}",
    "peak_memory_gb": "{:.1f} GB",
    "busy": "{:.0%}",
    "times_faster": "{:.1f}x",
    "times_faster_whole": "{:.1f}x",
    "largest_difference": "{:.1e}",
}
"""What is shown of the report, by the end of its name there; the rest is in the JSON alone."""

AIMS = {
    "host": {"tokens_per_second": ">= 3,000,000"},
    "first_use.warm": {"compile": "< 5 s"},
    "tier2": {"busy": ">= 90%"},
    "tier3": {"busy": ">= 90%"},
    "1.7b.tier2.block": {"peak_share": ">= 60%"},
    "135m.tier2.block": {"peak_share": ">= 35%"},
    "loop.mmlu_5shot": {"times_faster_whole": ">= 20x"},
    "loop.mmlu_0shot": {"times_faster_whole": ">= 8x"},
    "loop.hellaswag": {"times_faster_whole": ">= 8x"},
}
"""What is aimed at on an H100, by a part of the name and its end."""


def table(content: dict[str, Any]) -> str:
    """Return all figures that are shown, in the order in which they were taken, and what failed."""
    rows: list[Row] = [("", "figure", "aim (H100)")]
    for part in ("host", "models"):
        rows += _rows(part, content.get(part, {}))
    rows += [(f"failed: {name}", "", "") for name in content["failed"]]
    return columns(rows)


def _rows(place: str, value: Any) -> Iterator[Row]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _rows(f"{place}.{name}", inner)
        return
    form = next((form for end, form in SHOWN.items() if place.endswith(f".{end}")), None)
    if form is not None:
        above, _, name = place.rpartition(".")
        aims = [aim[name] for part, aim in AIMS.items() if part in above and name in aim]
        yield place.removeprefix("models."), form.format(value), "".join(aims)
