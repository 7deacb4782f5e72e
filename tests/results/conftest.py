"""Two stages with results, few items each."""

import shutil
from pathlib import Path

import pytest

from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import make_plans
from tests.reporting.pages import write_report, write_results

SECTIONS = tuple(tier.section for tier in TIERS.values())


@pytest.fixture(scope="session")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both stages scored, the second one compared with its bridge; to be read, not changed."""
    root = tmp_path_factory.mktemp("scored")
    write_results(root, tiers=SECTIONS, items=12, blocks=9, prompts=8)
    write_report(make_plans(root, tiers=SECTIONS)["second"])
    return root


@pytest.fixture
def plans(scored: Path, tmp_path: Path) -> dict[str, StagePlan]:
    """The stages of a copy, to change."""
    shutil.copytree(scored, tmp_path, dirs_exist_ok=True)
    return make_plans(tmp_path, tiers=SECTIONS)
