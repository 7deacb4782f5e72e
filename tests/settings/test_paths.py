"""Which folder a relative path of a configuration is seen from."""

from pathlib import Path

import pytest
import yaml

from evaluation.root import SUITES
from evaluation.settings.config import load_config, validate_config
from evaluation.settings.planning import stage_suite

STAGE = {"checkpoints": "ckpts", "steps": [1], "suites": ["mine"]}
CONTENT = {"results": "results", "cache": "cache", "sequence_length": 64, "stages": {"one": STAGE}}


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


def test_then_the_working_folder_of_which_a_path_stays_as_it_is_written(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.chdir(file.parent)
        assert load_config(file).stages["one"].checkpoints == "ckpts"
    (file.parent / "ckpts").rmdir()
    assert load_config(file).stages["one"].checkpoints == "ckpts"


def test_what_is_written_is_seen_from_the_working_folder(file: Path) -> None:
    (file.parent / "results").mkdir()
    assert load_config(file).results == "results"


def test_a_tokenizer_is_a_folder_if_there_is_one(file: Path) -> None:
    assert load_config(file).tokenizer.name == "hub/name"
    (file.parent / "hub" / "name").mkdir(parents=True)
    assert load_config(file).tokenizer.name == str(file.parent / "hub" / "name")


def test_of_several_files_the_last_comes_first(file: Path, tmp_path: Path) -> None:
    content = yaml.safe_load(file.read_text())
    other = tmp_path / "other" / "more.yaml"
    (other.parent / "ckpts").mkdir(parents=True)
    found = validate_config(content, "both", [file, other]).stages["one"].checkpoints
    assert found == str(other.parent / "ckpts")


def test_suites_that_come_with_the_workflow_need_no_folder(file: Path) -> None:
    assert load_config(file).suites == str(SUITES)
    (file.parent / "task_suites").mkdir()
    (file.parent / "task_suites" / "mine.yaml").write_text("extends: stage1_ppl_slices\n")
    config = load_config(file)
    assert config.suites == str(file.parent / "task_suites")
    assert stage_suite(config, "one").slices
