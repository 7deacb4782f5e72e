"""The pages: a stage's page is its section of the template, the first page has every stage in brief.

A page works offline: the charts' library, the rows that they draw and the answers are in it. Numbers are
those of the stage's table, to six digits. `snakemake --report` opens pages of at most 1.5 MB, so a page
holds headlines and the questions that find room; `summary.csv` beside it and `show` have the rest.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from evaluation.errors import EvaluationError
from evaluation.reporting import charts
from evaluation.reporting.charts import Drawn
from evaluation.reporting.decision import decision_row
from evaluation.reporting.flipped import WITH_ANSWERS, AnswerFlip, flips_of, moves
from evaluation.reporting.judged_stage import JudgedStage
from evaluation.reporting.provenance import provenance_rows
from evaluation.reporting.rendering import as_json, packed, rendered
from evaluation.settings.tiers import TIERS

LARGEST = 1_500_000
"""Most bytes of a page."""

ROWS = 2_800
"""Most rows that a page holds; of more checkpoints it shows some, evenly."""

SHOWN = "stage checkpoint step role tier item metric higher_is_better value low high n".split()
SHOWN += "chance delta delta_low delta_high p_holm mde flag".split()
"""Columns that charts and the page's table read."""

EACH_WAY = 3
"""Most questions of an item that a page shows as gained, and as lost."""

SHORT = 700
"""Characters of a text that a page shows: the end of a prompt, the beginning of an answer."""

TABLE, MOVES = alt.NamedData("table"), alt.NamedData("moves")

Section = dict[str, Any]

BAND = "Band: the 95 % interval of the paired difference from the bridge; dotted: chance"
NOTES = {
    "heat": "Blue is better than the bridge, orange worse; ▲ and ▼ are significant (Holm).",
    "forest": "Paired differences with 95 % intervals. In a grey bar, a change is too small to detect.",
    "moves": "Shares of questions that became right, and that became wrong.",
    "curves": f"{BAND}; dashed: the bridge. Lines of dashes and dots: models that were scored once.",
    "joined": f"{BAND}. At a grey line a stage begins.",
    "positions": "Nats per token by the number of tokens before.",
}
"""What a reader needs to know of each chart."""


def stage_page(stage: JudgedStage) -> str:
    """Return a stage's page."""
    frame = _thinned(charts.headlines(stage.frame), stage.chosen)
    moved = moves(stage.plan, frame) if stage.plan.stage.bridge else pd.DataFrame()
    words = {
        "title": stage.plan.name,
        "decisions": [asdict(decision_row(stage))],
        "pages": {"all stages": _link(Path(stage.plan.config.results), stage.plan.results)},
        "problems": stage.problems,
        "shown": _which_shown(stage, frame),
        "charts": [*_stage_charts(stage, frame, moved)],
        "quality": [row.model_dump() for row in stage.quality.rows] if stage.quality else [],
        "provenance": provenance_rows(stage),
        "chosen": "" if stage.chosen is None else stage.plan.label(stage.chosen),
        "flips": [],
    }
    data = {"table": packed(frame[SHOWN]), "moves": packed(moved)}
    room = LARGEST - len(rendered(data, words).encode())
    words["flips"] = [*_fitting(_flips(stage), room)]
    return rendered(data, words)


def front_page(stages: Mapping[str, JudgedStage]) -> str:
    """Return the page of all stages, the latest first."""
    latest = [*stages.values()][::-1]
    frame = _with_total(stages)
    first = next(iter(stages.values())).plan.config
    problems = [f"{s.plan.name}: {text}" for s in latest for text in s.problems]
    words = {
        "title": Path(first.results).name,
        "decisions": [asdict(decision_row(stage)) for stage in latest],
        "pages": {s.plan.name: _link(s.plan.results, Path(first.results)) for s in latest},
        "problems": problems,
        "shown": "",
        "charts": [*_joined_charts(frame)],
        "quality": [],
        "provenance": [row for stage in latest for row in provenance_rows(stage)],
        "chosen": "",
        "flips": [],
    }
    shown = frame[frame["item"].isin(_shared(frame))]
    return rendered({"table": packed(shown[[*SHOWN, "total"]])}, words)


def _with_total(stages: Mapping[str, JudgedStage]) -> pd.DataFrame:
    """Return the headlines of all stages; `total` counts tokens, or else steps, through them."""
    parts = [charts.headlines(stage.frame) for stage in stages.values()]
    frame = pd.concat([part for part in parts if len(part)] or parts)
    steps = frame[frame["role"] != "bridge"]
    if len(steps) and steps["tokens"].notna().all() and steps["tokens_before"].notna().all():
        return frame.assign(total=frame["tokens_before"] + frame["tokens"])
    before = {name: _steps_before(name, stages) for name in stages}
    return frame.assign(total=frame["stage"].map(before) + frame["step"])


def _steps_before(name: str, stages: Mapping[str, JudgedStage], seen: tuple[str, ...] = ()) -> int:
    """Return the steps of training before a stage, along the stages that it continues."""
    stage = stages[name].plan.stage if name in stages and name not in seen else None
    origin = (stage.trained_from or stage.bridge) if stage else None
    before = (origin.stage or "") if origin else ""
    if origin is None or before not in stages:
        return 0
    last = max(stages[before].steps, default=0)
    return _steps_before(before, stages, (*seen, name)) + (origin.step or last)


def _thinned(frame: pd.DataFrame, chosen: int | None) -> pd.DataFrame:
    """Return the rows of as many checkpoints as a page has room for, the chosen and last one among them."""
    steps = [*dict.fromkeys(frame.loc[frame["role"] != "bridge", "step"])]
    every = math.ceil(len(frame) / ROWS)
    kept = {*steps[::-1][::every], chosen}
    return frame[(frame["role"] == "bridge") | frame["step"].isin(kept)]


def _which_shown(stage: JudgedStage, frame: pd.DataFrame) -> str:
    count = frame.loc[frame["role"] != "bridge", "step"].nunique()
    if count == len(stage.steps):
        return ""
    return f"This page shows {count} of {len(stage.steps)} checkpoints; summary.csv has all."


def _link(page: Path, start: Path) -> str:
    return os.path.relpath(page / "report.html", start).replace(os.sep, "/")


def _stage_charts(
    stage: JudgedStage, frame: pd.DataFrame, moved: pd.DataFrame
) -> Iterator[Section]:
    """Yield the charts of a stage, tier by tier."""
    chosen = "" if stage.chosen is None else stage.plan.label(stage.chosen)
    for kind, name, chart in figures(TABLE, MOVES, frame, moved, chosen):
        yield _section(kind, name, chart)


def figures(
    data: charts.Data,
    moves_data: charts.Data,
    frame: pd.DataFrame,
    moved: pd.DataFrame,
    chosen: str,
) -> Iterator[tuple[charts.Kind, str, Drawn]]:
    """Yield tier and headline, what it is, and the chart, of everything that is drawn of a stage.

    Args:
        data: Rows of headlines, or the name under which they are embedded; `moves_data` likewise.
        chosen: The checkpoint that is shown first.
    """
    for kind in charts.kinds_of(frame):
        own = charts.of_kind(frame, kind)
        items, known = (
            charts.items_of(own),
            [*dict.fromkeys(own[own["delta"].notna()]["checkpoint"])],
        )
        if known:
            first = chosen if chosen in known else known[-1]
            yield kind, "heat", charts.heat(data, kind, items, known)
            yield kind, "forest", charts.forest(data, kind, items, known, first)
            counted = [item for item in items if len(moved) and item in set(moved["item"])]
            if kind[0] in WITH_ANSWERS and counted:
                yield kind, "moves", charts.moves(moves_data, kind[0], counted, known, first)
        yield kind, "curves", charts.curves(data, kind, items)


def _joined_charts(frame: pd.DataFrame) -> Iterator[Section]:
    """Yield a tier's curves through all stages, of what more than one stage has."""
    starts = frame[frame["role"] != "bridge"].groupby("stage")["total"].min()
    borders = sorted(set(starts.dropna()))[1:]
    for kind in charts.kinds_of(frame):
        own = charts.of_kind(frame, kind)
        items = [item for item in charts.items_of(own) if item in _shared(own)]
        yield _section(
            kind, "joined", charts.curves(TABLE, kind, items, x="total", borders=borders)
        )


def _shared(frame: pd.DataFrame) -> set[str]:
    """Return the items that the most stages have, means among them."""
    stages = frame.groupby("item")["stage"].nunique()
    return set(stages[stages >= min(2, stages.max())].index)


def _section(kind: charts.Kind, name: str, chart: Drawn) -> Section:
    tier, metric = TIERS[kind[0]], TIERS[kind[0]].metric(kind[1])
    unit = "" if metric.unit in metric.words else f", {metric.unit}"
    title = (
        f"{tier.title} ({tier.name}), {metric.words}{', %' if metric.unit == 'fraction' else unit}"
    )
    spec = chart.to_dict(format="vega-lite")
    spec.pop("$schema", None)
    about = {"title": title, "name": name, "note": NOTES[name], "spec": spec}
    return {"id": "_".join((*kind, name)), **about}


def _flips(stage: JudgedStage) -> Iterator[Section]:
    """Yield the questions that the chosen checkpoint gained and lost, the lost ones first."""
    if stage.chosen is None or stage.chosen not in stage.deltas:
        return
    rows = stage.rows[stage.rows["primary"] & stage.rows["delta"].notna()]
    for tier in WITH_ANSWERS:
        items = [*dict.fromkeys(rows.loc[rows["tier"] == tier, "item"])]
        for item in items:
            try:
                flips = [*flips_of(stage.plan, stage.chosen, tier, [item], EACH_WAY)]
            except EvaluationError as error:
                yield {"tier": tier, "item": item, "note": str(error), "flips": []}
                continue
            if flips:
                yield {"tier": tier, "item": item, "note": "", "flips": [*map(_flip, flips)]}


def _flip(flip: AnswerFlip) -> Section:
    sides = {"bridge": flip.theirs, "this checkpoint": flip.ours}
    return {
        "id": flip.ours.id,
        "change": "gained" if flip.gain > 0 else "lost",
        "prompt": _cut(flip.ours.prompt[-SHORT:], len(flip.ours.prompt)),
        "target": _cut(flip.ours.target[:SHORT], len(flip.ours.target)),
        "answers": {
            name: {
                "text": _cut(side.answer[:SHORT], len(side.answer)),
                "why": "; ".join(side.reasons),
            }
            for name, side in sides.items()
        },
        "choices": [
            (_cut(ours.text[:SHORT], len(ours.text)), theirs.score, ours.score)
            for ours, theirs in zip(flip.ours.choices, flip.theirs.choices, strict=False)
        ],
    }


def _cut(text: str, whole: int) -> str:
    return text if len(text) == whole else f"{text} … ({whole:,} characters)"


def _fitting(sections: Iterable[Section], room: int) -> Iterator[Section]:
    """Yield the sections that there is room for, each with at least some of its questions."""
    for section in sections:
        while section["flips"] and (size := 2 * len(as_json(section))) > room:
            section = {**section, "flips": section["flips"][:-1]}
        if section["flips"] or section["note"]:
            room -= size if section["flips"] else 300
            yield section
