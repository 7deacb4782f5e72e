"""Configuration: what is refused, in whose words, and how a stage is resolved."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import ConfigError
from evaluation.settings.config import load_config, validate_config
from evaluation.settings.effective import write_effective
from evaluation.settings.plan import plan_stage, plan_stages
from evaluation.settings.step_lists import Every
from tests.settings.test_bad_settings import suite_files


def content(**stage: Any) -> dict[str, Any]:
    return {
        "results": "results",
        "cache": "cache",
        "tokenizer": {"name": "org/tok"},
        "sequence_length": 64,
        "stages": {
            "stage1": {"checkpoints": "ckpts/1", "steps": [10, 20], "suites": ["base"]},
            "stage2": {"checkpoints": "ckpts/2", "steps": [5], "suites": ["base"], **stage},
        },
    }


def test_variables_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRATCH", "/scratch/me")
    config = validate_config(content(checkpoints="${SCRATCH}/ckpts"), "mine.yaml")
    assert config.stages["stage2"].checkpoints == "/scratch/me/ckpts"


@pytest.mark.parametrize("written", ["every: 500", {"every": 500}])
def test_every_is_read_in_both_spellings(written: Any) -> None:
    config = validate_config(content(steps=written), "mine.yaml")
    assert config.stages["stage2"].steps == Every(every=500)


def test_one_name_for_two_things_in_one_cache_is_refused(tmp_path: Path) -> None:
    folder = suite_files(
        tmp_path,
        base={"slices": {"web": {"dataset": "w"}}},
        other={"slices": {"web": {"dataset": "v"}}},
    )
    raw = content(suites=["other"]) | {"suites": str(folder)}
    with pytest.raises(ConfigError, match="'web' is defined differently"):
        plan_stages(validate_config(raw, "mine.yaml"))
    raw["stages"]["stage2"]["sequence_length"] = 128  # another cache: no clash
    plans = plan_stages(validate_config(raw, "mine.yaml"))
    assert plans["stage1"].cache != plans["stage2"].cache


def test_tokenizer_and_length_come_from_a_training_config(tmp_path: Path) -> None:
    training = tmp_path / "train.yaml"
    training.write_text(
        "tokenizer: {tokenizer_name_or_path: org/t}\ntokens: {sequence_length: 4096}"
    )
    folder = suite_files(tmp_path, base={"slices": {"web": {"dataset": "w"}}})
    raw = content(training_config=str(training)) | {"suites": str(folder)}
    plan = plan_stage(validate_config(raw, "mine.yaml"), "stage2")
    assert (plan.tokenizer.name, plan.sequence_length) == ("org/t", 4096)


def test_or_from_the_checkpoints_own(tmp_path: Path) -> None:
    (tmp_path / "ckpts" / "5").mkdir(parents=True)
    (tmp_path / "ckpts" / "5" / "config.yaml").write_text(
        "tokenizer: {tokenizer_name_or_path: org/own}\ntokens: {sequence_length: 32}"
    )
    folder = suite_files(tmp_path, base={"slices": {"web": {"dataset": "w"}}})
    raw = content(checkpoints=str(tmp_path / "ckpts")) | {"suites": str(folder)}
    del raw["tokenizer"], raw["sequence_length"], raw["stages"]["stage1"]
    plan = plan_stage(validate_config(raw, "mine.yaml"), "stage2")
    assert (plan.tokenizer.name, plan.sequence_length) == ("org/own", 32)


def test_the_effective_file_reads_back_as_the_same_configuration(tmp_path: Path) -> None:
    raw = content(bridge={"stage": "stage1", "step": 20}) | {"results": str(tmp_path)}
    config = validate_config(raw, "mine.yaml")
    path = write_effective(config)
    assert load_config(path) == config
    assert write_effective(config) == path


def test_only_its_user_reads_the_effective_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = content(command="score --token s3cret") | {"results": str(tmp_path / "results")}
    config = validate_config(raw, "mine.yaml")
    before = os.umask(0o002)  # results that a group shares
    try:
        path = write_effective(config)
        os.chmod(path, 0o664)  # as an earlier version left it
        assert write_effective(config) == path
    finally:
        os.umask(before)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)] == [0o600, 0o700]
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o775
    monkeypatch.setattr(os, "getuid", lambda: 4242)  # another user has a file of the same settings
    assert write_effective(config) != path


def test_another_users_configuration_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    (tmp_path / "theirs.yaml").touch()
    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(ConfigError, match=r"theirs\.yaml: you may not read it; ask its owner"):
        load_config(tmp_path / "theirs.yaml")
