"""The pages: a stage's page is its section of the template, the first page has every stage in brief.

A page works offline: the charts' library, the rows that they draw and the answers are in it. Numbers are
those of the stage's table, to six digits. `snakemake --report` opens pages of at most 1.5 MB, so a page
holds headlines and the questions that find room; `summary.csv` beside it and `show` have the rest.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from evaluation.errors import EvaluationError
from evaluation.reporting import charts
from evaluation.reporting.charts import Drawn
from evaluation.reporting.decision import decision_lines, decision_row
from evaluation.reporting.figures import figures
from evaluation.reporting.flips import AnswerPair, answers_of
from evaluation.reporting.judged_stage import JudgedStage
from evaluation.reporting.provenance import provenance_rows
from evaluation.reporting.references import with_references
from evaluation.reporting.rendering import as_json, rendered
from evaluation.results.stage_files import PAGE
from evaluation.settings.tiers import TIERS

LARGEST = 1_500_000
"""Most bytes of a page."""

ROWS = 2_800
"""Most rows that a page holds; of more checkpoints it shows some, evenly."""

SHOWN = "stage checkpoint step role tier item metric higher_is_better value low high n".split()
SHOWN += "chance delta delta_low delta_high p_holm mde flag gained lost".split()
"""Columns that charts and the page's table read."""

EACH_WAY = 3
"""Most questions of an item that a page shows as gained, and as lost."""

SHORT = 700
"""Characters of a text that a page shows: the end of a prompt, the beginning of an answer."""

TABLE = alt.NamedData("table")

Section = dict[str, Any]

NOTES = {
    "heat": "Blue is better than the bridge, orange worse; ▲ and ▼ are significant (Holm).",
    "forest": "Paired differences with 95 % intervals. In a grey bar, a change is too small to detect.",
    "moves": "Shares of questions that became right, and that became wrong.",
    "curves": "Triangles are significantly better or worse than the bridge.",
    "joined": "Training tokens, or else steps, through all stages; a grey line begins the named stage.",
    "positions": "Nats per token by the number of tokens before.",
}
"""What a reader needs to know of each chart."""


def stage_page(stage: JudgedStage) -> str:
    """Return a stage's page."""
    config, last = stage.plan.config, max(stage.steps, default=None)
    folder = None if last is None else stage.plan.step_folder(last)
    frame, notes = with_references(charts.headlines(stage.frame), config, folder)
    frame = _thinned(frame, stage.chosen)
    positions = stage.positions
    words = _words(
        stage.plan.name, [stage], {"all stages": _link(config.results, stage.plan.results)}
    )
    words |= {
        "notes": [*_which_shown(stage, frame), *notes],
        "charts": [*_stage_charts(stage, frame, positions)],
        "quality": [*stage.quality.rows] if stage.quality else [],
        "chosen": "" if stage.chosen is None else stage.plan.label(stage.chosen),
    }
    data = {"table": frame[SHOWN], "positions": positions}
    room = LARGEST - len(rendered(data, words).encode())
    return rendered(data, words | {"flips": [*_fitting(_flips(stage), room)]})


def front_page(stages: Mapping[str, JudgedStage], runs: Sequence[str] = ()) -> str:
    """Return the page of all stages, the latest first; `runs` are sentences on other runs."""
    latest = [*stages.values()][::-1]
    latest.sort(key=lambda stage: not stage.plan.stage.objective)
    results = latest[0].plan.config.results
    frame = _with_total(stages)
    frame = _thinned(frame[frame["item"].isin(_shared(frame))])
    links = {stage.plan.name: _link(stage.plan.results, results) for stage in latest}
    words = _words(f"All stages: {Path(results).name}", latest, links)
    words |= {"notes": [*runs], "charts": [*_joined_charts(frame)]}
    return rendered({"table": frame[[*SHOWN, "total"]]}, words)


def overview(stages: Mapping[str, JudgedStage]) -> str:
    """Return the decisions as reStructuredText, with which Snakemake's report begins."""
    blocks = []
    for stage in [*stages.values()][::-1]:
        first, *others = decision_lines(decision_row(stage))
        lines = [f"**{_plain(f'{stage.plan.name}: {first}')}**", *map(_plain, others)]
        blocks.append("".join(f"| {line}\n" for line in lines))
    return "\n".join(blocks)


def _plain(text: str) -> str:
    """Escape what reStructuredText would read as markup."""
    return re.sub(r"([^\w\s]|_)", r"\\\1", " ".join(text.split()))


def _words(title: str, stages: Sequence[JudgedStage], pages: Mapping[str, str]) -> Section:
    """Return what the template shows of stages; other parts are empty."""
    named = len(stages) > 1
    return {
        "title": title,
        "pages": pages,
        "decisions": [asdict(decision_row(stage)) for stage in stages],
        "problems": [
            f"{stage.plan.name}: {text}" if named else text
            for stage in stages
            for text in stage.problems
        ],
        "provenance": [row for stage in stages for row in provenance_rows(stage)],
        "notes": [],
        "charts": [],
        "quality": [],
        "chosen": "",
        "flips": [],
    }


def _with_total(stages: Mapping[str, JudgedStage]) -> pd.DataFrame:
    """Return the headlines of all stages; `total` counts tokens, or else steps, through them."""
    parts = [charts.headlines(stage.frame) for stage in stages.values()]
    frame = pd.concat([part for part in parts if len(part)] or parts)
    steps = frame[frame["role"] == "step"]
    if len(steps) and steps["tokens"].notna().all() and steps["tokens_before"].notna().all():
        return frame.assign(total=frame["tokens_before"] + frame["tokens"])
    before = {name: _steps_before(name, stages) for name in stages}
    return frame.assign(total=frame["stage"].map(before) + frame["step"])


def _steps_before(name: str, stages: Mapping[str, JudgedStage], seen: tuple[str, ...] = ()) -> int:
    """Return the steps of training before a stage, along the stages that it continues."""
    stage = stages[name].plan.stage if name in stages and name not in seen else None
    origin = stage.bridge if stage else None
    before = (origin.stage or "") if origin else ""
    if origin is None or before not in stages:
        return 0
    last = max(stages[before].steps, default=0)
    return _steps_before(before, stages, (*seen, name)) + (origin.step or last)


def _thinned(frame: pd.DataFrame, chosen: int | None = None) -> pd.DataFrame:
    """Return the rows of as many checkpoints as a page has room for, the chosen and last ones among them."""
    every = math.ceil(len(frame) / ROWS)
    steps = frame[frame["role"] == "step"].drop_duplicates(["stage", "step"])
    places = steps.groupby("stage").cumcount(ascending=False)
    kept = steps[(places % every == 0) | (steps["step"] == chosen)][["stage", "step"]]
    known = pd.MultiIndex.from_frame(frame[["stage", "step"]]).isin(pd.MultiIndex.from_frame(kept))
    return frame[(frame["role"] != "step") | known]


def _which_shown(stage: JudgedStage, frame: pd.DataFrame) -> Iterator[str]:
    count = frame.loc[frame["role"] == "step", "step"].nunique()
    if count < len(stage.steps):
        yield f"{count} of {len(stage.steps)} checkpoints are shown here; summary.csv has all"


def _link(folder: Path | str, start: Path | str) -> str:
    return os.path.relpath(Path(folder) / PAGE, start).replace(os.sep, "/")


def _stage_charts(
    stage: JudgedStage, frame: pd.DataFrame, positions: pd.DataFrame
) -> Iterator[Section]:
    """Yield the charts of a stage, tier by tier."""
    for kind, name, chart in figures(stage, frame, TABLE):
        lines = _lines(charts.of_kind(frame, kind), bridge=True) if name == "curves" else ""
        yield _section(kind, name, chart, lines)
    for metric, own in positions.groupby("metric"):
        items = [*dict.fromkeys(own["item"])]
        chart = charts.positions(alt.NamedData("positions"), items)
        yield _section((own["tier"].iloc[0], str(metric)), "positions", chart)


def _joined_charts(frame: pd.DataFrame) -> Iterator[Section]:
    """Yield a tier's curves through all stages, of what more than one stage has."""
    for kind in charts.kinds_of(frame):
        items = charts.items_of(charts.of_kind(frame, kind))
        drawn = charts.curves(TABLE, kind, items, x="total")
        yield _section(kind, "joined", drawn, _lines(charts.of_kind(frame, kind)))


def _shared(frame: pd.DataFrame) -> set[str]:
    """Return the items that the most stages have, means among them."""
    stages = frame.groupby("item")["stage"].nunique()
    return set(stages[stages >= min(2, stages.max())].index)


def _lines(rows: pd.DataFrame, *, bridge: bool = False) -> str:
    """Return what the lines are that curves of these rows have besides the values."""
    known = {
        "band: the 95 % interval of the paired difference from the bridge": rows[
            "delta_low"
        ].notna(),
        "dashed: the bridge": (rows["role"] == "bridge") & bridge,
        "dotted: chance": rows["chance"] > 0,
        "dashes and dots: models that were scored once": rows["role"] == "reference",
    }
    text = "; ".join(name for name, has in known.items() if has.any())
    return f" {text[0].upper()}{text[1:]}." if text else ""


def _section(kind: charts.Kind, name: str, chart: Drawn, lines: str = "") -> Section:
    tier, metric = TIERS[kind[0]], TIERS[kind[0]].metric(kind[1])
    unit = "" if metric.unit in metric.words else f", {metric.unit}"
    title = (
        f"{tier.title} ({tier.name}), {metric.words}{', %' if metric.unit == 'fraction' else unit}"
    )
    spec = chart.to_dict(format="vega-lite")
    spec.pop("$schema", None)
    about = {"title": title, "name": name, "note": NOTES[name] + lines, "spec": spec}
    return {"id": "_".join((*kind, name)), **about}


def _flips(stage: JudgedStage) -> Iterator[Section]:
    """Yield the questions that the chosen checkpoint gained and lost, the lost ones first."""
    if stage.chosen is None or stage.chosen not in stage.deltas:
        return
    rows = stage.rows[stage.rows["gained"].notna()]
    for tier, item in dict.fromkeys(zip(rows["tier"], rows["item"], strict=True)):
        flips, note, asked = list[AnswerPair](), "", (stage.plan, stage.chosen, tier, item)
        try:
            flips = [*answers_of(*asked, EACH_WAY, flipped=True)]
        except EvaluationError as error:
            note = str(error)
        if flips or note:
            yield {"tier": tier, "item": item, "note": note, "flips": [*map(_flip, flips)]}


def _flip(flip: AnswerPair) -> Section:
    ours, theirs = flip.ours, flip.theirs or flip.ours
    sides = {"bridge": theirs, "this checkpoint": ours}
    choices = zip(ours.choices, theirs.choices, strict=False)
    return {
        "id": ours.id,
        "change": flip.change,
        "prompt": _cut(ours.prompt, from_end=True),
        "target": _cut(ours.target),
        "answers": {n: (_cut(side.answer), "; ".join(side.reasons)) for n, side in sides.items()},
        "choices": [(_cut(mine.text), other.score, mine.score) for mine, other in choices],
    }


def _cut(text: str, *, from_end: bool = False) -> str:
    """Return a text that a page has room for, with the length of a longer one."""
    if len(text) <= SHORT:
        return text
    whole = f"({len(text):,} characters)"
    return f"{whole} … {text[-SHORT:]}" if from_end else f"{text[:SHORT]} … {whole}"


def _fitting(sections: Iterable[Section], room: int) -> Iterator[Section]:
    """Yield the sections that there is room for, each with at least some of its questions."""
    for section in sections:
        while section["flips"] and (size := 2 * len(as_json(section))) > room:
            section = {**section, "flips": section["flips"][:-1]}
        if section["flips"] or section["note"]:
            changes = [flip["change"] for flip in section["flips"]]
            lost, gained = changes.count("lost"), changes.count("gained")
            section["counts"] = f"{lost} lost, {gained} gained"
            room -= size if section["flips"] else 300
            yield section
