"""A run's jobs see the steps that were there when it started."""

import os
from pathlib import Path
from typing import Any

import pytest

from evaluation.command_hints import CONFIG_VARIABLE
from evaluation.errors import ConfigError
from evaluation.orchestration.run_configuration import keep_config, run_config
from evaluation.settings.config import load_config


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
    config, path = run_config(content, True, [], [])
    assert not path.exists()  # as long as no job is to run
    keep_config(config, [])
    assert config.stages["one"].steps == (10,)
    assert config.stages["two"].steps == "all"
    assert os.environ[CONFIG_VARIABLE] == str(path)
    make_step(tmp_path / "one", 20)
    assert run_config(content, False, [], []) == (config, path)
    assert run_config(content, True, [], [])[0].stages["one"].steps == (10, 20)


def test_a_target_that_was_taken_for_a_configuration(
    content: dict[str, Any], tmp_path: Path
) -> None:
    """`snakemake --configfile mine.yaml …/tier3_cf.json`, which is there and a mapping."""
    files = [tmp_path / "mine.json", tmp_path / "tier3_cf.json"]
    with pytest.raises(ConfigError, match=r"tier3_cf\.json was to be made.*`snakemake TARGET"):
        run_config({**content, "accuracy": 0.5}, True, files, [])
    with pytest.raises(ConfigError) as alone:
        run_config({**content, "accuracy": 0.5}, True, files[:1], [])
    assert "TARGET" not in str(alone.value)


def test_without_the_variable_a_job_finds_them_itself(
    content: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CONFIG_VARIABLE)
    config, path = run_config(content, False, [], [])
    assert config.stages["one"].steps == (10,)
    assert load_config(path) == config
