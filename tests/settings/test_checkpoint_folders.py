"""Checkpoints in folders of any trainer's names, or listed from anywhere."""

import os
from pathlib import Path
from typing import Any

import pytest

from evaluation.checkpoints.subjects import bridge_subject, stage_steps, step_subject
from evaluation.errors import CheckpointError, ConfigError
from evaluation.settings.config import Config, load_config, validate_config
from evaluation.settings.planning import plan_stage, plan_stages
from evaluation.settings.stage import Bridge
from evaluation.settings.steps import step_of_folder
from tests.settings.test_paths import write_effective

STEPS = {
    "10": 10,
    "step_10": 10,
    "run_step20": 20,
    "checkpoint-500": 500,
    "my-run.ckpt-7": 7,
    "iteration_0": 0,
    "final": None,
    "007": None,
    "step10-unsharded.tmp": None,
    "step_99999999999999999999": None,
}


@pytest.mark.parametrize("name", STEPS)
def test_the_step_of_a_folder(name: str) -> None:
    assert step_of_folder(name) == STEPS[name]


def checkpoint(folder: Path) -> Path:
    """A folder that looks like a checkpoint of Nanotron."""
    (folder / "model").mkdir(parents=True)
    (folder / "model_config.json").write_text("{}")
    return folder


def config_of(checkpoints: Any, steps: Any = "all", **more: Any) -> Config:
    stage = {"checkpoints": checkpoints, "steps": steps, "suites": ["stage1_cf_core"]}
    content = {"results": "r", "cache": "c", "stages": {"s": stage}, "sequence_length": 64}
    return validate_config(content | {"tokenizer": {"name": "t"}} | more, "config.yaml")


def folders(config: Config) -> dict[int, str]:
    """The folder of each step, as the workflow finds them."""
    plan = plan_stage(config, "s")
    return {step: str(plan.checkpoint(step)) for step in stage_steps(plan)}


def test_all_finds_steps_by_any_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What looks like a checkpoint and is no step is named."""
    names = ("step10", "run_step20", "iter_0000030", "checkpoint-500", "40")
    for name in names:
        checkpoint(tmp_path / name)
    for name in ("4000_old", "stage1-step1000-tokens5B"):
        checkpoint(tmp_path / name)
    (tmp_path / "step_70").mkdir()  # not yet written
    found = folders(config_of(str(tmp_path)))
    assert "4000_old, stage1-step1000-tokens5B; rename them" in caplog.text
    assert {step: Path(path).name for step, path in found.items()} == {
        10: "step10",
        20: "run_step20",
        30: "iter_0000030",
        40: "40",
        500: "checkpoint-500",
    }
    assert list(folders(config_of(str(tmp_path), {"every": 20}))) == [20, 40, 500]
    assert folders(config_of(str(tmp_path), [30])) == {30: str(tmp_path / "iter_0000030")}
    for folder, steps, said in (
        (tmp_path, {"every": 7}, "multiple of 7"),
        ("none", "all", "no such folder"),
    ):
        with pytest.raises(CheckpointError, match=said):
            folders(config_of(str(folder), steps))


def test_two_folders_of_one_step_are_refused_unless_one_is_a_link(tmp_path: Path) -> None:
    checkpoint(tmp_path / "10")
    (tmp_path / "step_10").symlink_to("10")
    assert folders(config_of(str(tmp_path))) == {10: str(tmp_path / "10")}
    checkpoint(tmp_path / "iter_010")
    for steps in ("all", [10], [20, 10]):
        with pytest.raises(CheckpointError, match=r"10 and iter_010 are both step 10; rename one"):
            folders(config_of(str(tmp_path), steps))
    assert folders(config_of(str(tmp_path), [20])) == {20: str(tmp_path / "20")}


def test_a_bridge_of_two_folders_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path / "new/2000")
    for name in ("ingredient1-step1000", "ingredient2-step1000", "step2000"):
        checkpoint(tmp_path / "old" / name)
    config = config_of(str(tmp_path / "old"), [2000])
    stage = config.stages["s"]
    new = stage.model_copy(update={"given": str(tmp_path / "new")})
    for step in (1000, None):
        bridge = Bridge(stage="s", step=step)
        stages = {"s": stage, "n": new.model_copy(update={"bridge": bridge})}
        plans = plan_stages(config.model_copy(update={"stages": stages}))
        if step is None:
            assert bridge_subject(plans["n"], plans).checkpoint == tmp_path / "old/step2000"
            continue
        with pytest.raises(CheckpointError, match="ingredient1-step1000 and ingredient2-step1000"):
            bridge_subject(plans["n"], plans)


@pytest.mark.parametrize("bridge", ["b/10", "c", "ckpts/../ckpts/./10/"])
def test_a_bridge_is_no_step_of_its_stage(
    bridge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever path."""
    monkeypatch.chdir(tmp_path)
    checkpoint(Path("ckpts/10"))
    Path("b").symlink_to("ckpts")
    Path("c").symlink_to("ckpts/10")
    config = config_of("ckpts", [10])
    stage = config.stages["s"].model_copy(update={"bridge": Bridge(path=bridge)})
    plans = plan_stages(config.model_copy(update={"stages": {"s": stage}}))
    with pytest.raises(ConfigError, match="zero by construction"):
        bridge_subject(plans["s"], plans)


def test_a_new_folder_is_noticed(tmp_path: Path) -> None:
    plan = plan_stage(config_of(str(tmp_path), [10]), "s")
    assert plan.checkpoint(10) == tmp_path / "10"
    checkpoint(tmp_path / "step10")
    os.utime(tmp_path, ns=(1, 1))
    assert plan.checkpoint(10) == tmp_path / "step10"


def test_checkpoints_are_listed_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = checkpoint(tmp_path / "a/model-x")
    second = checkpoint(tmp_path / "b/deep/step_20")
    third = checkpoint(tmp_path / "c/final")
    last = {"path": "c/final", "step": 600}
    given = [{"path": str(first), "step": 3, "name": "x"}, str(second), last]
    monkeypatch.chdir(tmp_path)
    config = config_of(given)
    expected = {3: str(first), 20: str(second), 600: str(third)}
    found = folders(config)
    assert {step: os.path.abspath(path) for step, path in found.items()} == expected
    assert config.stages["s"].checkpoints == str(tmp_path)
    assert step_subject(plan_stage(config, "s"), 3).label == "step 3 (x)"
    assert load_config(write_effective(config)) == config
    assert list(folders(config_of(given, [20]))) == [20]


def test_a_tokenizer_by_another_path_has_the_same_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work/deep").mkdir(parents=True)
    (tmp_path / "t").mkdir()
    (tmp_path / "link").symlink_to("t")
    caches = set()
    for folder, name in (("work", "../t"), ("work/deep", "../../t"), (".", "t"), (".", "link")):
        monkeypatch.chdir(tmp_path / folder)
        config = config_of("x", [1], tokenizer={"name": name})
        caches.add(plan_stage(config, "s").cache.name)
    assert len(caches) == 1
    monkeypatch.chdir(tmp_path / "work")
    hub = plan_stage(config_of("x", [1], tokenizer={"name": "org/t"}), "s").cache.name
    assert hub not in caches
