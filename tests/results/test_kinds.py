"""A second tier of each kind, by another name and with other metrics, goes the same ways."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from evaluation.bridge.deltas import compare
from evaluation.reporting.tables.values import values_of
from evaluation.results.items import TIER_MODELS
from evaluation.results.read import read_results
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

TWINS = {"tier2": "nats", "tier3": "credit", "tier4": "rates", "tier5": "answers"}


def test_twins_have_the_same_deltas_and_values(
    plans: dict[str, StagePlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = plans["second"].step_folder(20), plans["second"].bridge_folder
    for name, twin in TWINS.items():
        tier = TIERS[name]
        summary, items = f"{twin}.json", f"{twin}{Path(tier.items_file).suffix}"
        metrics = tuple(metric for metric in tier.metrics if metric.name != "bits_per_byte")
        own = replace(tier, name=twin, metrics=metrics, summary_file=summary, items_file=items)
        monkeypatch.setitem(TIERS, twin, own)
        monkeypatch.setitem(TIER_MODELS, twin, TIER_MODELS[name])
        for folder in sides:
            shutil.copy(folder / tier.summary_file, folder / summary)
            shutil.copy(folder / tier.items_file, folder / items)
            shutil.copy(folder / tier.units_file, folder / own.units_file)
    ours = [read_results(folder, list(TWINS)) for folder in sides]
    others = [read_results(folder, list(TWINS.values())) for folder in sides]
    known = [replace(d, tier=TWINS[d.tier]) for d in compare(*ours)]
    bits = "delta_bits_per_byte"
    assert compare(*others) == [delta for delta in known if delta.metric != bits]
    values = [replace(value, tier=TWINS[value.tier]) for value in values_of(ours[0])]
    assert values_of(others[0]) == [one for one in values if one.metric != "bits_per_byte"]


def test_a_header_of_another_kind_of_file_is_refused(plans: dict[str, StagePlan]) -> None:
    """Each file is read by its own model."""
    folder = plans["second"].step_folder(20)
    for name, tier in TIERS.items():
        text = (folder / tier.summary_file).read_text()
        TIER_MODELS[name].file.model_validate_json(text)
        for other in TIER_MODELS.keys() - {name}:
            with pytest.raises(ValidationError):
                TIER_MODELS[other].file.model_validate_json(text)
