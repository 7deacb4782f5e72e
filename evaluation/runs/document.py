"""Compared runs as `comparison.json` and `comparison.csv` hold them."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation import protocol
from evaluation.bridge.delta import OVERALL, delta_columns
from evaluation.results.columns import write_csv
from evaluation.results.comparison_file import (
    COMPARISON,
    COMPARISON_COLUMNS,
    COMPARISON_TABLE,
    Comparison,
)
from evaluation.results.files import write_model
from evaluation.runs.compare import ComparedRuns, ComparedStage
from evaluation.runs.leads import Lead, corrected_for, lead_sentence
from evaluation.runs.matching import Match

Names = tuple[str, str]


def as_document(comparisons: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the content of `comparison.json`; see `compared` and `not_compared`."""
    return {"protocol": protocol.BRIDGE, "comparisons": list(comparisons)}


def compared(runs: ComparedRuns) -> dict[str, Any]:
    """Return two runs as `results.comparison_file.RunComparison` has them."""
    names = runs.ours.name, runs.theirs.name
    return {
        **_header(names, runs.ours.path, runs.theirs.path),
        "error": None,
        "notes": list(runs.notes),
        "stages": [_stage(names, stage) for stage in runs.stages],
    }


def not_compared(names: Names, ours: Path, theirs: Path, error: str) -> dict[str, Any]:
    return {**_header(names, ours, theirs), "error": error}


def write_document(folder: Path, content: dict[str, Any]) -> list[Path]:
    """Write both files into a folder; returns their paths."""
    rows = [
        row
        for runs in content["comparisons"]
        for stage in runs.get("stages", ())
        for row in stage["deltas"]
    ]
    write_csv(folder / COMPARISON_TABLE, COMPARISON_COLUMNS, rows)
    write_model(folder / COMPARISON, Comparison, content)
    return [folder / COMPARISON_TABLE, folder / COMPARISON]


def _header(names: Names, ours: Path, theirs: Path) -> dict[str, Any]:
    return {
        "run_a": names[0],
        "run_b": names[1],
        "path_a": str(ours),
        "path_b": str(theirs),
    }


def _stage(names: Names, stage: ComparedStage) -> dict[str, Any]:
    return {
        "stage_a": stage.stages[0],
        "stage_b": stage.stages[1],
        "by": stage.how.by,
        "checkpoints": len(stage.matched),
        "across_tokenizers": stage.across_tokenizers,
        "notes": list(stage.notes),
        "corrected_for": corrected_for(stage.leads, len(stage.matched)),
        "leads": [_lead(lead, stage.matched) for lead in _in_order(stage.leads)],
        "deltas": list(_rows(names, stage)),
    }


def _in_order(leads: Sequence[Lead]) -> list[Lead]:
    return sorted(leads, key=lambda lead: lead.key[1] != OVERALL)


def _lead(lead: Lead, matched: Sequence[Match]) -> dict[str, Any]:
    since = None if lead.since is None else matched[lead.since]
    return {
        "tier": lead.key[0],
        "item": lead.key[1],
        "metric": lead.key[2],
        "ahead": lead.ahead,
        "since_step_a": since and since.ours.step,
        "since_step_b": since and since.theirs.step,
        "checkpoints": 0 if lead.since is None else len(matched) - lead.since,
        "confidence": 1 - lead.alpha,
        "sentence": lead_sentence(lead, matched),
    }


def _rows(names: Names, stage: ComparedStage) -> Iterator[dict[str, Any]]:
    for number, (match, deltas) in enumerate(zip(stage.matched, stage.deltas, strict=True)):
        at_once = {lead.key: lead.estimates[number] for lead in stage.leads}
        for delta in deltas:
            known = at_once.get((delta.tier, delta.item, delta.metric))
            columns = delta_columns(delta)
            yield {
                "run_a": names[0],
                "run_b": names[1],
                "stage_a": stage.stages[0],
                "stage_b": stage.stages[1],
                "step_a": match.ours.step,
                "step_b": match.theirs.step,
                "tokens_a": match.ours.tokens,
                "tokens_b": match.theirs.tokens,
                "value_a": columns.pop("value"),
                "value_b": columns.pop("bridge_value"),
                **columns,
                "low_all": known and known.low,
                "high_all": known and known.high,
            }
