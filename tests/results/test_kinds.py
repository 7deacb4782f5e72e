"""A second tier of each kind, by another name and with other metrics, goes the same ways."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.bridge.deltas import compare
from evaluation.reporting.tables.values import values_of
from evaluation.results.items import ITEM_READERS
from evaluation.results.read import read_results
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

TWINS = {"tier2": "nats", "tier3": "credit", "tier4": "rates", "tier5": "answers"}


@pytest.fixture
def twins(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, twin in TWINS.items():
        tier = TIERS[name]
        files = {
            "summary_file": f"{twin}.json",
            "items_file": f"{twin}{Path(tier.items_file).suffix}",
        }
        metrics = tuple(metric for metric in tier.metrics if metric.name != "bits_per_byte")
        monkeypatch.setitem(TIERS, twin, replace(tier, name=twin, metrics=metrics, **files))
        monkeypatch.setitem(ITEM_READERS, twin, ITEM_READERS[name])


def test_twins_have_the_same_deltas_and_values(plans: dict[str, StagePlan], twins: None) -> None:
    del twins
    plan = plans["second"]
    sides = plan.step_folder(20), plan.bridge_folder
    for folder in sides:
        for name, twin in TWINS.items():
            for attribute in ("summary_file", "items_file"):
                source, target = (getattr(TIERS[key], attribute) for key in (name, twin))
                shutil.copy(folder / source, folder / target)
    own = [read_results(folder, list(TWINS)) for folder in sides]
    others = [read_results(folder, list(TWINS.values())) for folder in sides]
    known = [replace(d, tier=TWINS[d.tier]) for d in compare(own[0], own[1])]
    bits = "delta_bits_per_byte"
    assert compare(others[0], others[1]) == [delta for delta in known if delta.metric != bits]
    values = [replace(value, tier=TWINS[value.tier]) for value in values_of(own[0])]
    assert values_of(others[0]) == [one for one in values if one.metric != "bits_per_byte"]


def test_a_header_of_another_kind_of_file_is_refused(plans: dict[str, StagePlan]) -> None:
    """Each file is read by its own model."""
    folder = plans["second"].step_folder(20)
    for name, tier in TIERS.items():
        content = json.loads((folder / tier.summary_file).read_text())
        models = [reader.file for reader in ITEM_READERS.values()]
        fits = []
        for model in models:
            try:
                model.model_validate_json(json.dumps(content))
            except ValueError:
                continue
            fits.append(model)
        assert fits == [ITEM_READERS[name].file]
