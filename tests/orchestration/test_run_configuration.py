"""A run's jobs see the steps that were there when it started."""

import os
from pathlib import Path
from typing import Any

import pytest

from evaluation.orchestration.run_configuration import run_config
from evaluation.settings.effective import CONFIG_VARIABLE


def make_step(folder: Path, step: int) -> None:
    (folder / str(step)).mkdir(parents=True)
    (folder / str(step) / "config.json").write_text("{}")


@pytest.fixture
def content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Two stages, the second without checkpoints so far."""
    monkeypatch.setenv(CONFIG_VARIABLE, "of another run")
    make_step(tmp_path / "one", 10)
    stages = {
        name: {"checkpoints": str(tmp_path / name), "steps": "all", "suites": ["s"]}
        for name in ("one", "two")
    }
    return {"results": str(tmp_path / "r"), "cache": str(tmp_path / "c"), "stages": stages}


def test_jobs_see_the_steps_of_the_start(content: dict[str, Any], tmp_path: Path) -> None:
    config, path = run_config(content, is_main=True)
    assert config.stages["one"].steps == (10,)
    assert config.stages["two"].steps == "all"
    assert os.environ[CONFIG_VARIABLE] == str(path)
    make_step(tmp_path / "one", 20)
    assert run_config(content, is_main=False) == (config, path)
    assert run_config(content, is_main=True)[0].stages["one"].steps == (10, 20)


def test_without_the_variable_a_job_finds_them_itself(
    content: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CONFIG_VARIABLE)
    config, _ = run_config(content, is_main=False)
    assert config.stages["one"].steps == (10,)
