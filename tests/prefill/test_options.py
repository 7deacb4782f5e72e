"""Which entries of which stages an option of `prefill` makes."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from evaluation.__main__ import main
from evaluation.commands import prefill
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import make_plans

MADE: list[tuple[list[str], list[tuple[str, str]]]] = [
    (["--slice", "web"], [("first", "web"), ("second", "web")]),
    (["--slice", "code"], [("second", "code")]),
    (["--probes", "--stage", "second"], [("second", "second")]),
    (["--task", "quiz", "--stage", "second"], [("second", "quiz")]),
]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two stages: the first has but one of the slices."""
    plan = make_plans(tmp_path)["second"]
    small = {"slices": {"web": {"dataset": "some/web", "group": "hq"}}}
    (tmp_path / "suites" / "small.yaml").write_text(yaml.safe_dump(small))
    content = json.loads(plan.config.model_dump_json())
    content["stages"]["first"]["suites"] = ["small"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
    return tmp_path / "config.yaml"


@pytest.mark.parametrize(("options", "wanted"), MADE)
def test_stages_that_have_it(
    config: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], wanted: list[tuple[str, str]]
) -> None:
    made: list[tuple[str, str]] = []
    recorder = SimpleNamespace(make=lambda plan, name: made.append((plan.name, name)))
    monkeypatch.setattr(prefill, "PREFILLS", dict.fromkeys(TIERS, recorder))
    assert main(["prefill", "--config", str(config), *options]) == 0
    assert made == wanted
