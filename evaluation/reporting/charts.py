"""The charts of a stage, drawn by Altair from the long table: on a page, as `figures/*.svg`, in a notebook.

    curves   a metric over checkpoints, a panel an item, with the paired interval about the bridge's value
    forest   deltas of one checkpoint against the bridge; a menu chooses the checkpoint
    heat     items by checkpoints, coloured by the change in multiples of the detectable one
    moves    shares of questions gained and lost against the bridge

Each takes rows of headlines, or the name under which a page embeds them, and which items and checkpoints
there are, in order.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import altair as alt
import pandas as pd
import vl_convert

from evaluation.files import write_text
from evaluation.settings.tiers import TIERS, TierName

Drawn: TypeAlias = alt.LayerChart | alt.FacetChart
Data: TypeAlias = pd.DataFrame | alt.NamedData

COLOURS = {
    "better": "#0072b2",
    "worse": "#c2410c",
    "unclear": "#626a73",
    "bridge": "#8a5a00",
    "ink": "#1b1f24",
    "border": "#b0b8c0",
    "pale": "#d5dae0",
}
"""Okabe and Ito's, safe for colour-blind readers, darkened until text in them is readable."""

SHAPES = {"better": "triangle-up", "worse": "triangle-down", "unclear": "circle"}
ACROSS = 4
CLIPPED = 3.0
"""Multiples of the detectable change at which the heat map's colours end."""


def headlines(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each item's headline over all positions: what pages and figures draw."""
    whole = frame[frame["position"].isna()]
    metrics = whole.groupby(["tier", "item"])["metric"].agg(set)
    shown = {key: TIERS[str(key[0])].headline_of(names) for key, names in metrics.items()}
    keys = zip(whole["tier"], whole["item"], strict=True)
    return whole[[shown[key] == name for key, name in zip(keys, whole["metric"], strict=True)]]


def items_of(frame: pd.DataFrame, tier: TierName) -> list[str]:
    """Return a tier's items in the order of the table, means first."""
    rows = frame[frame["tier"] == tier]
    groups = {"overall", *rows["group"].dropna()}
    return sorted(
        dict.fromkeys(rows["item"]), key=lambda item: (item != "overall", item not in groups)
    )


def curves(
    data: Data,
    tier: TierName,
    items: Sequence[str],
    *,
    x: str = "step",
    borders: Sequence[float] = (),
    levels: Mapping[str, float] | None = None,
) -> Drawn:
    """Draw a metric over checkpoints, a panel an item.

    Args:
        x: Column of the horizontal axis: `step`, or `total` tokens through all stages.
        borders: Where stages begin on that axis.
        levels: Values of models that were scored once, by name; drawn as lines.
    """
    base = alt.Chart(data)
    steps = base.transform_filter("datum.role != 'bridge'")
    paired = "datum.value - datum.delta + datum.delta"
    axis = alt.Axis(tickCount=4, format="~g")
    across = alt.X(f"{x}:Q", title=x, axis=alt.Axis(tickCount=4, format="~s", grid=False))
    down = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=axis)
    band = steps.transform_filter("isValid(datum.delta_low)").transform_calculate(
        from_bridge=f"{paired}_low", to_bridge=f"{paired}_high"
    )
    chance = base.transform_aggregate(chance="max(chance)", groupby=["item"])
    bridge = base.transform_filter("datum.role == 'bridge'")
    layers: list[Any] = [
        band.mark_area(opacity=0.18, color=COLOURS["better"]).encode(
            across, alt.Y("from_bridge:Q", title=None), alt.Y2("to_bridge:Q"), alt.Detail("stage:N")
        ),
        chance.transform_filter("datum.chance > 0")
        .mark_rule(color=COLOURS["unclear"], strokeDash=[1, 3])
        .encode(alt.Y("chance:Q")),
        bridge.mark_rule(color=COLOURS["bridge"], strokeDash=[5, 3]).encode(alt.Y("value:Q")),
        steps.mark_line(color=COLOURS["better"], strokeWidth=1.5).encode(
            across, down, alt.Detail("stage:N")
        ),
        steps.mark_point(filled=True, opacity=1, size=26).encode(
            across, down, *_flags(), tooltip=_tooltip("value", "low", "high", "delta")
        ),
    ]
    layers += _lines(base, borders, levels or {})
    panels = alt.Facet(
        "item:N", sort=[*items], title=None, header=alt.Header(labelFontWeight="bold")
    )
    drawn = alt.layer(*layers).properties(width=210, height=110)
    faceted: Drawn = drawn.facet(panels, columns=ACROSS).resolve_scale(y="independent")
    return faceted.transform_filter(f"datum.tier == '{tier}'")


def _lines(base: alt.Chart, borders: Sequence[float], levels: Mapping[str, float]) -> list[Any]:
    """Return a vertical line where each stage begins, and a horizontal one for each model scored once."""
    upright = base.mark_rule(color=COLOURS["border"])
    flat = base.mark_rule(color=COLOURS["ink"], strokeDash=[8, 2, 2, 2])
    drawn: list[Any] = [upright.encode(x=alt.datum(float(at))) for at in borders]
    for name, number in levels.items():
        drawn.append(flat.encode(y=alt.datum(number), tooltip=alt.value(f"{name}: {number:.4g}")))
    return drawn


def forest(
    data: Data, tier: TierName, items: Sequence[str], checkpoints: Sequence[str], chosen: str
) -> Drawn:
    """Draw one checkpoint's deltas with 95 % intervals over grey bars of what is not detectable."""
    base = (
        alt.Chart(data)
        .transform_filter(f"datum.tier == '{tier}' && datum.checkpoint == checkpoint")
        .transform_filter("isValid(datum.delta)")
        .transform_calculate(least="-datum.mde")
    )
    down, title = _rows(items), "change against the bridge"
    undetectable = base.mark_bar(color=COLOURS["pale"], height=9).encode(
        alt.X("least:Q", title=title), alt.X2("mde:Q"), down
    )
    interval = base.mark_rule(strokeWidth=2).encode(
        alt.X("delta_low:Q"), alt.X2("delta_high:Q"), down, _flags()[0]
    )
    mark = base.mark_point(filled=True, opacity=1, size=50).encode(
        alt.X("delta:Q"),
        down,
        *_flags(),
        tooltip=_tooltip("delta", "delta_low", "delta_high", "mde"),
    )
    none = alt.Chart(alt.InlineData([{}])).mark_rule(color=COLOURS["ink"]).encode(x=alt.datum(0))
    return _chosen(alt.layer(undetectable, none, interval, mark), checkpoints, chosen)


def heat(data: Data, tier: TierName, items: Sequence[str], checkpoints: Sequence[str]) -> Drawn:
    """Draw items by checkpoints, coloured by the change in multiples of the detectable one."""
    gain = "(datum.higher_is_better ? 1 : -1) * datum.delta / datum.mde"
    base = (
        alt.Chart(data)
        .transform_filter(f"datum.tier == '{tier}' && datum.role != 'bridge' && datum.mde > 0")
        .transform_calculate(gain=gain)
    )
    across = alt.X(
        "checkpoint:N", sort=[*checkpoints], title=None, axis=alt.Axis(labelOverlap=True)
    )
    colours = [COLOURS["worse"], "#f6f8fa", COLOURS["better"]]
    scale = alt.Scale(domain=[-CLIPPED, 0, CLIPPED], range=colours, clamp=True, interpolate="rgb")
    title = "change / detectable change (blue: better)"
    legend = alt.Legend(title=title, orient="bottom", direction="horizontal", titleLimit=400)
    cells = base.mark_rect().encode(
        across,
        _rows(items),
        alt.Color("gain:Q", scale=scale, legend=legend),
        tooltip=_tooltip("value", "delta", "delta_low", "delta_high", "mde"),
    )
    marks = (
        base.transform_filter("datum.flag == 'better' || datum.flag == 'worse'")
        .mark_point(filled=True, opacity=1, size=30, color=COLOURS["ink"])
        .encode(across, _rows(items), _flags()[1])
    )
    return alt.layer(cells, marks).properties(width=alt.Step(22), height=alt.Step(17))


def moves(data: Data, items: Sequence[str], checkpoints: Sequence[str], chosen: str) -> Drawn:
    """Draw the shares of questions that one checkpoint gained and lost against the bridge."""
    base = alt.Chart(data).transform_filter("datum.checkpoint == checkpoint")
    layers = []
    for name, sign, colour in (("gained", "", "better"), ("lost", "-", "worse")):
        share = f"{sign}100 * datum.{name} / datum.n"
        bars = base.transform_calculate(share=share).mark_bar(color=COLOURS[colour], height=11)
        axis = alt.X("share:Q", title="% of questions: lost (left), gained (right)")
        layers.append(bars.encode(axis, _rows(items), tooltip=_tooltip("gained", "lost", "n")))
    return _chosen(alt.layer(*layers), checkpoints, chosen)


def write_svg(path: Path, chart: Drawn) -> None:
    """Write a chart as SVG, with text as text."""
    write_text(path, vl_convert.vegalite_to_svg(chart.to_dict()))


def _rows(items: Sequence[str]) -> alt.Y:
    return alt.Y("item:N", sort=[*items], title=None, axis=alt.Axis(labelLimit=260))


def _chosen(chart: Drawn, checkpoints: Sequence[str], chosen: str) -> Drawn:
    menu = alt.binding_select(options=[*checkpoints], name="checkpoint ")
    drawn: Drawn = chart.add_params(alt.param(name="checkpoint", value=chosen, bind=menu))
    return drawn.properties(width=520, height=alt.Step(17))


def _flags() -> tuple[alt.Color, alt.Shape]:
    """Return colour and shape of the verdict on an item; both, for readers of either."""
    colours = alt.Scale(domain=[*SHAPES], range=[COLOURS[flag] for flag in SHAPES])
    shapes = alt.Scale(domain=[*SHAPES], range=[*SHAPES.values()])
    return (
        alt.Color("flag:N", scale=colours, legend=None),
        alt.Shape("flag:N", scale=shapes, legend=None),
    )


def _tooltip(*numbers: str) -> list[alt.Tooltip]:
    shown = [alt.Tooltip("item:N"), alt.Tooltip("checkpoint:N")]
    return shown + [alt.Tooltip(f"{name}:Q", format=".4~g") for name in numbers]
