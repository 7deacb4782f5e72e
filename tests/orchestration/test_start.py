"""How a run starts: the steps that jobs see, and what stops it."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from snakemake.exceptions import format_exception_to_string

from evaluation.errors import EvaluationError
from evaluation.orchestration.hooks import reset_future_times
from evaluation.orchestration.run_configuration import keep_config, run_config
from evaluation.orchestration.stops import RunError, or_stop
from evaluation.settings.config import load_config
from evaluation.version import CONFIG_VARIABLE


def test_times_in_the_future_are_reset(tmp_path: Path) -> None:
    """Snakemake would stop after the first job that reads such a file."""
    late, past = tmp_path / "late", tmp_path / "past"
    for path, moment in ((late, time.time() + 3600), (past, 1000.0)):
        path.touch()
        os.utime(path, (moment, moment))
    reset_future_times([late, past, tmp_path / "absent"])
    assert late.stat().st_mtime <= time.time()
    assert past.stat().st_mtime == 1000.0


def test_a_sentence_that_ends_a_run_stands_alone() -> None:
    """A context that an error passes writes into it which lines of code it has passed."""

    @contextmanager
    def passed() -> Iterator[None]:
        yield

    def fail() -> None:
        raise EvaluationError("no such stage")

    with pytest.raises(RunError) as raised, passed():
        or_stop(fail)
    assert format_exception_to_string(raised.value, {__file__: {}}) == "RunError:\nno such stage"


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
    config, path = run_config(content, True, [])
    assert not path.exists()  # as long as no job is to run
    keep_config(config, [])
    assert config.stages["one"].steps == (10,)
    assert config.stages["two"].steps == "all"
    assert os.environ[CONFIG_VARIABLE] == str(path)
    make_step(tmp_path / "one", 20)
    assert run_config(content, False, []) == (config, path)
    assert run_config(content, True, [])[0].stages["one"].steps == (10, 20)


def test_without_the_variable_a_job_finds_them_itself(
    content: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CONFIG_VARIABLE)
    config, path = run_config(content, False, [])
    assert config.stages["one"].steps == (10,)
    assert load_config(path) == config
