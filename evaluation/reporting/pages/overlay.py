"""Curves of several runs over one axis: a line for each run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evaluation.bridge.deltas import FREE_OF_TOKENS
from evaluation.errors import ResultsError
from evaluation.reporting.pages.curves import Series, rank_of
from evaluation.reporting.tables.values import Value, values_of
from evaluation.results.read import read_results, tiers_in
from evaluation.runs.find import RunCheckpoint
from evaluation.settings.tiers import TIERS, TierName

Key = tuple[TierName, str, str]
Points = dict[Key, list[dict[str, Any]]]


def points_of(checkpoints: Iterable[RunCheckpoint], damaged: list[str]) -> tuple[Points, set[str]]:
    """The points of a run's curves by tier, item and metric, and its tokenizers.

    What cannot be read is left out, with a sentence in `damaged`.
    """
    points: Points = {}
    tokenizers: set[str] = set()
    for one in checkpoints:
        try:
            results = read_results(one.folder, tiers_in(one.folder))
        except ResultsError as error:
            damaged.append(str(error))
            continue
        tokenizers.add(str(results.header.tokenizer.identity))
        for value in values_of(results):
            points.setdefault((value.tier, value.item, value.metric), []).append(_point(one, value))
    return points, tokenizers


def _point(one: RunCheckpoint, value: Value) -> dict[str, Any]:
    bounds = {name: getattr(value, name) for name in ("value", "low", "high", "chance")}
    return {"step": one.step, "tokens": one.tokens, **bounds}


def overlaid_series(runs: Mapping[str, tuple[Points, set[str]]]) -> list[Series]:
    """A series for each measure, with a line for each run that has it, numbered in order.

    Of runs whose tokenizer is not the first one's, only what no token is counted in.
    """
    first = next((tokenizers for _, tokenizers in runs.values() if tokenizers), set())
    lines: dict[Key, list[dict[str, Any]]] = {}
    for number, (name, (points, tokenizers)) in enumerate(runs.items()):
        for key, own in points.items():
            if tokenizers <= first or is_free_of_tokens(key):
                line = {"name": name, "number": number, "points": own}
                lines.setdefault(key, []).append(line)
    return list(_series(lines))


def is_free_of_tokens(key: Key) -> bool:
    """Whether a measure means the same with every tokenizer."""
    return TIERS[key[0]].metric(key[2]).unit in FREE_OF_TOKENS


def _series(lines: Mapping[Key, Sequence[Mapping[str, Any]]]) -> Iterator[Series]:
    for key in sorted(lines, key=rank_of):
        chance = lines[key][0]["points"][0]["chance"]
        known = {"tier": key[0], "item": key[1], "metric": key[2], "chance": chance}
        yield {**known, "points": [], "lines": lines[key], "bridge": None, "spread": None}
