"""A page of HTML from the template: the charts' library and all data are in it, so it works offline."""

import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import pandas as pd
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined

ENVIRONMENT = Environment(
    loader=PackageLoader("evaluation.reporting", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def rendered(data: Mapping[str, pd.DataFrame], words: Mapping[str, Any]) -> str:
    """Return a page: `data` are the tables that its script draws, `words` what the template shows."""
    specs = {chart["id"]: chart["spec"] for chart in words["charts"]}
    embedded = as_json({"data": {k: packed(v) for k, v in data.items()}, "specs": specs})
    page = ENVIRONMENT.get_template("page.html")
    text = page.render(library=_library(), embedded=embedded, **words)
    return text.encode(errors="replace").decode()  # a completion may hold half of a character


@cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace(
        "</script", "<\\/script"
    )


def as_json(content: Any) -> str:
    """Return JSON that may stand in a script of a page."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def packed(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a table by column: numbers to six digits, texts as places in a list of theirs."""
    columns: dict[str, Any] = {}
    for name in frame.columns:
        cells = [_cell(value) for value in frame[name].tolist()]
        if any(isinstance(cell, str) for cell in cells):
            texts = {text: place for place, text in enumerate(dict.fromkeys(cells))}
            columns[name] = {"texts": [*texts], "at": [texts[cell] for cell in cells]}
        else:
            columns[name] = cells
    return columns


def _cell(value: Any) -> Any:
    if value is None or value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, float):
        number = float(f"{value:.6g}")
        return int(number) if number.is_integer() and abs(number) < 1e15 else number
    return value
