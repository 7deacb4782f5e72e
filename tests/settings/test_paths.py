"""Which folder a relative path of a configuration is seen from."""

from pathlib import Path

import pytest
import yaml

from evaluation.errors import ConfigError
from evaluation.files import write_text
from evaluation.settings.config import Config, load_config
from evaluation.settings.effective import effective_path, effective_text
from evaluation.settings.planning import plan_stage, stage_suite
from evaluation.version import SUITES

STAGE = {"checkpoints": "ckpts", "steps": [1], "suites": ["mine"]}
CONTENT = {"results": "results", "cache": "cache", "sequence_length": 64, "stages": {"one": STAGE}}


def write_effective(config: Config) -> Path:
    """Write the copy of a configuration that the shell of each job writes."""
    path = effective_path(config)
    write_text(path, effective_text(config))
    return path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration in a folder beside the working folder."""
    for folder in ("here", "there/ckpts"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    path = tmp_path / "there" / "config.yaml"
    path.write_text(yaml.safe_dump({**CONTENT, "tokenizer": {"name": "hub/name"}}))
    return path


def test_the_folder_of_the_file_comes_first(file: Path) -> None:
    Path("ckpts").mkdir()
    for path in (file, "../there/config.yaml"):
        assert load_config(path).stages["one"].checkpoints == str(file.parent / "ckpts")


def test_a_tokenizer_is_a_folder_if_there_is_one(file: Path) -> None:
    assert load_config(file).tokenizer.name == "hub/name"
    (file.parent / "hub" / "name").mkdir(parents=True)
    assert load_config(file).tokenizer.name == str(file.parent / "hub" / "name")


def test_suites_that_come_with_the_workflow_need_no_folder(file: Path) -> None:
    assert load_config(file).suites == str(SUITES)
    (file.parent / "task_suites").mkdir()
    (file.parent / "task_suites" / "mine.yaml").write_text("extends: stage1_ppl_slices\n")
    config = load_config(file)
    assert config.suites == str(file.parent / "task_suites")
    assert stage_suite(config, "one").slices


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration in the working folder, and another folder with all that it names, too."""
    for name in ("study", "other"):
        for folder in ("ckpts", "task_suites", "tok", "data", "hub/set"):
            (tmp_path / name / folder).mkdir(parents=True)
        (tmp_path / name / "task_suites/mine.yaml").write_text("extends: stage1_ppl_slices\n")
    mirrors = {"a/b": "data", "c/d": "../study/hub"}
    content = {**CONTENT, "tokenizer": {"name": "tok"}}
    path = tmp_path / "study" / "config.yaml"
    path.write_text(yaml.safe_dump({**content, "mirrors": mirrors}))
    monkeypatch.chdir(tmp_path / "study")
    return path


def test_the_copy_of_a_run_means_the_same_from_any_folder(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(study)
    copy = write_effective(config).absolute()
    assert load_config(copy) == config
    monkeypatch.chdir(tmp_path / "other")
    elsewhere = load_config(copy)
    paths = [elsewhere.results, elsewhere.cache, elsewhere.suites, *elsewhere.mirrors.values()]
    paths += [elsewhere.stages["one"].checkpoints, elsewhere.tokenizer.name]
    names = ["results", "cache", "task_suites", "data", "hub", "ckpts", "tok"]
    assert [Path(path).resolve() for path in paths] == [study.parent / name for name in names]
    assert elsewhere.folders == (str(study.parent),)
    plan, other = (plan_stage(one, "one") for one in (config, elsewhere))
    assert plan.tokenizer.identity != other.tokenizer.identity  # as other has a folder `tok`, too
    monkeypatch.chdir(study.parent)
    assert plan.tokenizer.identity == other.tokenizer.identity
    assert effective_path(load_config(copy)).absolute() == copy


def test_a_tokenizer_that_is_written_as_a_path_is_expanded(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("$MINE/tok", "${MINE}/tok", "~/tok"):
        monkeypatch.setenv("MINE", "/mine")
        monkeypatch.setenv("HOME", "/mine")
        file.write_text(yaml.safe_dump({**CONTENT, "tokenizer": {"name": name}}))
        assert load_config(file).tokenizer.name == "/mine/tok"
    file.write_text(yaml.safe_dump({**CONTENT, "tokenizer": {"name": "$NONE/tok"}}))
    with pytest.raises(ConfigError, match=r"tokenizer\.name: uses \$NONE, which is not set"):
        load_config(file)
