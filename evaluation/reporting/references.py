"""Rows of models that were scored once, or whose scores others published: lines in the curves.

`runs:` names a folder of results of one checkpoint, whose items are compared with the stage's as a pair
is; items that must not be compared have no line. Nothing is paired with published scores.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from evaluation.bridge.comparable import check_comparable
from evaluation.bridge.delta import OVERALL
from evaluation.errors import EvaluationError
from evaluation.reporting.tables.values import values_of
from evaluation.results.read import Results, read_folder
from evaluation.results.tier_files import tiers_in
from evaluation.settings.config import Config

Row = tuple[str, str, str, str, float]
"""Name of the model, tier, item, metric and value."""

COLUMNS = ["checkpoint", "tier", "item", "metric", "value"]


def with_references(
    frame: pd.DataFrame, config: Config, folder: Path | None
) -> tuple[pd.DataFrame, list[str]]:
    """Return a stage's headlines with the rows of references, and sentences on what these are.

    Args:
        folder: Results of a checkpoint of the stage, with which references are compared.
    """
    rows, notes = list[Row](), list[str]()
    for name, published in config.references.items():
        notes.append(f"{name} (published): {published.source}; nothing is paired with it")
        for item, score in published.scores.items():
            row = published.tier, item, published.measured, score
            rows.append((f"{name} (published)", *row))
    for name, run in config.runs.items():
        if folder is not None and tiers_in(Path(run.path)):
            try:
                rows += _comparable(name, read_folder(folder), read_folder(Path(run.path)), notes)
            except EvaluationError as error:
                notes.append(f"{name} has no line: {error}")
    known = set(zip(frame["tier"], frame["item"], frame["metric"], strict=True))
    drawn = pd.DataFrame([row for row in rows if row[1:4] in known], columns=COLUMNS)
    if not len(drawn):
        return frame, notes
    about = {"role": "reference", "stage": frame["stage"].iloc[0]}
    more = drawn.assign(**about).reindex(columns=frame.columns)
    return pd.concat([frame.astype(object), more.astype(object)], ignore_index=True), notes


def _comparable(name: str, ours: Results, theirs: Results, notes: list[str]) -> Iterator[Row]:
    """Yield a reference's values that are comparable; of means those over the same items."""
    values = values_of(theirs)
    for tier in (tier for tier in ours.tiers if tier in theirs.tiers):
        mine, other = ours.tiers[tier], theirs.tiers[tier]
        shown = {item for item in mine.items if item in other.items}
        items = [n for n in mine.items if mine.tier.rates or n in shown]
        sides = [replace(side, items={n: side.items[n] for n in items}) for side in (mine, other)]
        shown |= {OVERALL} if {*mine.items} == {*other.items} else set()
        differ = mine.file.tokenizer.identity != other.file.tokenizer.identity
        try:
            alone = (Results(folder=side.folder, tiers={tier: side}) for side in sides)
            check_comparable(*alone, across_tokenizers=differ)
        except EvaluationError as error:
            notes.append(f"{name} has no line in {tier}: {error}")
            continue
        for value in values:
            is_shown = value.tier == tier and value.item in shown
            if is_shown and (not differ or mine.tier.metric(value.metric).is_free_of_tokens):
                yield name, value.tier, value.item, value.metric, value.value
