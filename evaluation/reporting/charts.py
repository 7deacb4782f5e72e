"""The charts of a stage, drawn by Altair from the long table: on a page, as `figures/*.svg`, in a notebook.

    curves   a metric over checkpoints, a panel an item, with the paired interval about the bridge's value
    forest   deltas of one checkpoint against the bridge; a menu chooses the checkpoint
    heat     items by checkpoints, coloured by the change in multiples of the detectable one
    moves    shares of questions gained and lost against the bridge

Each takes rows of headlines, or the name under which a page embeds them, and which items and checkpoints
there are, in order.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import altair as alt
import pandas as pd
import vl_convert

from evaluation.files import write_text
from evaluation.settings.tiers import TIERS, TierName

Kind = tuple[TierName, str]
"""A tier and a headline of its items: values that share an axis."""

Drawn: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart
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
ACROSS, WIDTH, HEIGHT = 4, 225, 110
"""Panels in a row, and the size of each."""

CLIPPED = 3.0
"""Multiples of the detectable change at which the heat map's colours end."""


def headlines(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each item's headline over all positions: what pages and figures draw."""
    whole = frame[frame["position"].isna()]
    metrics = whole.groupby(["tier", "item"])["metric"].agg(set).to_dict()
    shown = {key: TIERS[key[0]].headline_of(names) for key, names in metrics.items()}
    keys = zip(whole["tier"], whole["item"], strict=True)
    heads = pd.Series([shown[key] for key in keys], index=whole.index, dtype=object)
    return whole[whole["metric"] == heads]


def kinds_of(frame: pd.DataFrame) -> list[Kind]:
    """Return the tiers and headlines that a table has, in the order of tiers."""
    known = dict.fromkeys(zip(frame["tier"], frame["metric"], strict=True))
    return sorted(known, key=lambda kind: [*TIERS].index(kind[0]))


def of_kind(frame: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Return the rows of a tier's headline."""
    return frame[(frame["tier"] == kind[0]) & (frame["metric"] == kind[1])]


def items_of(rows: pd.DataFrame) -> list[str]:
    """Return items in the order of the table, means first."""
    groups = {"overall", *rows["group"].dropna()}
    return sorted(
        dict.fromkeys(rows["item"]), key=lambda item: (item != "overall", item not in groups)
    )


def curves(data: Data, kind: Kind, items: Sequence[str], *, x: str = "step") -> Drawn:
    """Draw a metric over checkpoints, a panel an item.

    Args:
        x: Column of the horizontal axis: `step`, or one through all stages, each of which gets its name.
    """
    base = alt.Chart(data)
    steps = base.transform_filter("datum.role == 'step'")
    shown = steps.transform_calculate(flag="datum.flag || 'unclear'")
    across = alt.X(f"{x}:Q", title=x, axis=alt.Axis(tickCount=4, format="~s", grid=False))
    down = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=_axis(kind, tickCount=4))
    paired = "datum.value - datum.delta + datum.delta"
    band = steps.transform_filter("isValid(datum.delta_low)").transform_calculate(
        from_bridge=f"{paired}_low", to_bridge=f"{paired}_high"
    )
    chance = base.transform_aggregate(chance="max(chance)", groupby=["item"])
    layers: list[Any] = [
        band.mark_area(opacity=0.18, color=COLOURS["better"]).encode(
            across, alt.Y("from_bridge:Q", title=None), alt.Y2("to_bridge:Q"), alt.Detail("stage:N")
        ),
        chance.transform_filter("datum.chance > 0")
        .mark_rule(color=COLOURS["unclear"], strokeDash=[1, 3])
        .encode(alt.Y("chance:Q")),
        _levels(base, "reference", [8, 2, 2, 2], kind),
        steps.mark_line(color=COLOURS["better"], strokeWidth=1.5).encode(
            across, down, alt.Detail("stage:N")
        ),
        shown.mark_point(filled=True, opacity=1, size=26).encode(
            across, down, *_flags(), tooltip=_tooltip(kind, "value", "low", "high", "delta")
        ),
    ]
    if x == "step":  # through all stages there are as many bridges, whose lines would be everywhere
        layers.append(_levels(base, "bridge", [5, 3], kind))
    else:
        begin = steps.transform_aggregate(begin=f"min({x})", groupby=["item", "stage"])
        layers.append(begin.mark_rule(color=COLOURS["border"]).encode(alt.X("begin:Q", title=x)))
        name = begin.mark_text(align="right", baseline="top", angle=270, fontSize=8, dx=-2, dy=1)
        layers.append(name.encode(alt.X("begin:Q"), y=alt.value(0), text="stage:N"))
    return _panels(alt.layer(*layers), items).transform_filter(_of(kind))


def _levels(base: alt.Chart, role: str, dash: list[float], kind: Kind) -> alt.Chart:
    """Return horizontal lines at the values of the bridge, or of models that were scored once."""
    rows = base.transform_filter(f"datum.role == '{role}'")
    lines = rows.mark_rule(color=COLOURS["bridge" if role == "bridge" else "ink"], strokeDash=dash)
    drawn: alt.Chart = lines.encode(alt.Y("value:Q"), tooltip=_tooltip(kind, "value"))
    return drawn


def positions(data: Data, items: Sequence[str]) -> Drawn:
    """Draw the loss by position in the context, of a checkpoint and of the bridge, a panel an item."""
    colours = alt.Scale(range=[COLOURS["better"], COLOURS["bridge"]])
    lines = (
        alt.Chart(data)
        .mark_line(point=True)
        .encode(
            alt.X("position:Q", title="tokens before", scale=alt.Scale(type="symlog")),
            alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)),
            alt.Color("checkpoint:N", scale=colours, title=None, legend=alt.Legend(orient="top")),
            tooltip=["item:N", "checkpoint:N", "position:Q", "value:Q"],
        )
    )
    return _panels(lines, items)


def forest(
    data: Data, kind: Kind, items: Sequence[str], checkpoints: Sequence[str], chosen: str
) -> Drawn:
    """Draw one checkpoint's deltas with 95 % intervals over grey bars of what is not detectable."""
    base = (
        alt.Chart(data)
        .transform_filter(f"{_of(kind)} && datum.checkpoint == checkpoint")
        .transform_filter("isValid(datum.delta)")
        .transform_calculate(least="-datum.mde", flag="datum.flag || 'unclear'")
    )
    metric = TIERS[kind[0]].metric(kind[1])
    down, title = _rows(items), f"change against the bridge, {metric.change_unit}"
    undetectable = base.mark_bar(color=COLOURS["pale"], height=9).encode(
        alt.X("least:Q", title=title, axis=_axis(kind)), alt.X2("mde:Q"), down
    )
    interval = base.mark_rule(strokeWidth=2).encode(
        alt.X("delta_low:Q"), alt.X2("delta_high:Q"), down, _flags()[0]
    )
    mark = base.mark_point(filled=True, opacity=1, size=50).encode(
        alt.X("delta:Q"),
        down,
        *_flags(),
        tooltip=_tooltip(kind, "delta", "delta_low", "delta_high", "mde"),
    )
    none = alt.Chart(alt.InlineData([{}])).mark_rule(color=COLOURS["ink"]).encode(x=alt.datum(0))
    return _chosen(alt.layer(undetectable, none, interval, mark), checkpoints, chosen)


def heat(data: Data, kind: Kind, items: Sequence[str], checkpoints: Sequence[str]) -> Drawn:
    """Draw items by checkpoints, coloured by the change in multiples of the detectable one."""
    gain = "(datum.higher_is_better ? 1 : -1) * datum.delta / datum.mde"
    base = (
        alt.Chart(data)
        .transform_filter(f"{_of(kind)} && datum.role != 'bridge' && datum.mde > 0")
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
        tooltip=_tooltip(kind, "value", "delta", "delta_low", "delta_high", "mde"),
    )
    marks = (
        base.transform_filter("datum.flag == 'better' || datum.flag == 'worse'")
        .mark_point(filled=True, opacity=1, size=30, color=COLOURS["ink"])
        .encode(across, _rows(items), _flags()[1])
    )
    return alt.layer(cells, marks).properties(width=alt.Step(22), height=alt.Step(17))


def moves(
    data: Data, kind: Kind, items: Sequence[str], checkpoints: Sequence[str], chosen: str
) -> Drawn:
    """Draw the shares of questions that one checkpoint gained and lost against the bridge."""
    own = f"{_of(kind)} && datum.checkpoint == checkpoint && isValid(datum.gained)"
    base = alt.Chart(data).transform_filter(own)
    layers = []
    for name, sign, colour in (("gained", "", "better"), ("lost", "-", "worse")):
        share = f"{sign}100 * datum.{name} / datum.n"
        bars = base.transform_calculate(share=share).mark_bar(color=COLOURS[colour], height=11)
        axis = alt.X("share:Q", title="% of questions: lost (left), gained (right)")
        layers.append(
            bars.encode(axis, _rows(items), tooltip=_tooltip(None, "gained", "lost", "n"))
        )
    return _chosen(alt.layer(*layers), checkpoints, chosen)


def write_svg(path: Path, chart: Drawn) -> None:
    """Write a chart as SVG, with text as text."""
    write_text(path, vl_convert.vegalite_to_svg(chart.to_dict()))


def _panels(chart: Any, items: Sequence[str]) -> Drawn:
    header = alt.Header(labelFontWeight="bold")
    by_item = alt.Facet("item:N", sort=[*items], title=None, header=header)
    sized = chart.properties(width=WIDTH, height=HEIGHT)
    drawn: Drawn = sized.facet(by_item, columns=ACROSS).resolve_scale(y="independent")
    return drawn


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


def _of(kind: Kind) -> str:
    return f"datum.tier == '{kind[0]}' && datum.metric == '{kind[1]}'"


def _axis(kind: Kind, **how: Any) -> alt.Axis:
    """Return an axis of values or changes: fractions in per cent."""
    if TIERS[kind[0]].metric(kind[1]).unit == "fraction":
        return alt.Axis(labelExpr="format(100 * datum.value, '.3~g')", **how)
    return alt.Axis(format="~g", **how)


def _tooltip(kind: Kind | None, *numbers: str) -> list[alt.Tooltip]:
    is_share = kind is not None and TIERS[kind[0]].metric(kind[1]).unit == "fraction"
    shown = [alt.Tooltip("item:N"), alt.Tooltip("checkpoint:N")]
    form = ".2~%" if is_share else ".4~g"
    return shown + [alt.Tooltip(f"{name}:Q", format=form) for name in numbers]
