"""The demo's suites are the real ones with fewer items."""

import shutil
from pathlib import Path

import pytest
import yaml

from demo.suites import LEFT_OUT, OWN, QUESTIONS, SPLITS, SUBJECTS, TOKENS, cut_suite
from evaluation.settings.config import load_config
from evaluation.settings.plan import plan_stages
from evaluation.settings.suites import Suite, load_suite
from evaluation.settings.yaml_files import read_yaml
from tests.conftest import ROOT

REAL = ROOT / "task_suites"


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suites")
    for path in REAL.glob("*.yaml"):
        (folder / path.name).write_text(yaml.safe_dump(cut_suite(read_yaml(path)), sort_keys=False))
    for name in OWN:
        shutil.copy(ROOT / "demo" / name, folder)
    return folder


def suites(folder: Path) -> Suite:
    tiers = [
        load_suite(folder, f"stage4_{kind}") for kind in ("ppl_slices", "cf_core", "sft_native")
    ]
    return Suite(slices=tiers[0].slices, tasks=tiers[1].tasks, probes=tiers[2].probes)


def test_nothing_but_the_number_of_items_and_their_split_changes(cut: Path) -> None:
    real, small = suites(REAL), suites(cut)
    assert small.slices == {
        name: item.model_copy(update={"tokens": TOKENS, "skip_documents": 0})
        for name, item in real.slices.items()
        if name not in LEFT_OUT
    }
    for name, item in real.tasks.items():
        if name in LEFT_OUT:
            assert name not in small.tasks
            continue
        changed = {"limit": QUESTIONS, "split": SPLITS.get(name, item.split)}
        if item.configs:
            changed["configs"] = SUBJECTS
        assert small.tasks[name] == item.model_copy(update=changed)


@pytest.mark.parametrize("name", sorted(path.stem for path in REAL.glob("*.yaml")))
def test_every_suite_that_is_cut_loads(cut: Path, name: str) -> None:
    real, small = load_suite(REAL, name), load_suite(cut, name)
    assert [*small.tasks] == [one for one in real.tasks if one not in LEFT_OUT]
    assert all(task.limit == QUESTIONS for task in small.tasks.values())


def test_every_category_keeps_a_probe(cut: Path) -> None:
    real, small = suites(REAL), suites(cut)
    categories = {probe.category for probe in real.probes.values()}
    assert {probe.category for probe in small.probes.values()} == categories
    assert small.probes.keys() < real.probes.keys()


def test_configuration_is_valid(cut: Path) -> None:
    config = load_config(ROOT / "config/demo.yaml")
    plans = plan_stages(config.model_copy(update={"suites": str(cut)}))
    assert list(plans) == ["stage1", "stage2", "stage3", "stage4", "stage2_slow"]
    assert [plan.tiers for plan in plans.values()] == [
        ("tier2", "tier3"),
        ("tier2", "tier3"),
        ("tier2", "tier3"),
        ("tier2", "tier3", "tier4", "tier5"),
        ("tier2", "tier3"),
    ]
