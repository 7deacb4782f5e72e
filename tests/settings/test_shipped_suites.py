"""The suites in task_suites: all can be planned, and those without a pinned revision are known."""

import re
from pathlib import Path

import pytest
import yaml

from evaluation.settings.config import validate_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.settings.sources import Source
from evaluation.settings.suites import load_suite
from tests.conftest import ROOT

SUITES = ROOT / "task_suites"


def planned(*suites: str) -> StagePlan:
    stage = {"checkpoints": "ckpts", "steps": [1], "suites": list(suites)}
    raw = {"results": "results", "cache": "cache", "suites": str(SUITES), "stages": {"one": stage}}
    raw |= {"tokenizer": {"name": "t"}, "sequence_length": 4096}
    return plan_stages(validate_config(raw, "config.yaml"))["one"]


@pytest.mark.parametrize("name", sorted(path.stem for path in SUITES.glob("*.yaml")))
def test_each_can_be_planned(name: str) -> None:
    assert planned(name).tiers


UNPINNED = Path(__file__).with_name("unpinned.yaml")


def test_what_has_no_pinned_revision_is_listed() -> None:
    """A commit that nobody has seen is not invented: prefill stores the one that it got."""
    suites = [load_suite(SUITES, path.stem) for path in sorted(SUITES.glob("*.yaml"))]
    items = [
        item
        for suite in suites
        for section in ("slices", "tasks", "generation_tasks")
        for item in getattr(suite, section).values()
        if isinstance(item, Source) and item.dataset
    ]
    moving = {
        str(one.dataset) for one in items if not re.fullmatch("[0-9a-f]{40}", one.revision or "")
    }
    assert sorted(moving) == yaml.safe_load(UNPINNED.read_text())
    pinned = {(one.revision, one.dataset) for one in items if one.dataset not in moving}
    commits = {revision for revision, _ in pinned}
    assert len(commits) == len(pinned) > len(moving) / 2  # none inherits another's commit
