"""Commits of code and files, and what a run says of where its configuration comes from."""

import re
import subprocess
from pathlib import Path

import pytest

from evaluation.commits import code_commit, commit_of
from evaluation.orchestration.run_configuration import keep_config, run_config
from evaluation.root import CONFIG_VARIABLE
from evaluation.settings.config import validate_config
from evaluation.settings.effective import origin_of, write_effective
from tests.bridge.folders import make_plans


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "evaluation").mkdir(parents=True)
    (folder / "evaluation" / "protocol.py").write_text("X = 1\n")
    (folder / "config.yaml").write_text("a: 1\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one", "--date", "2026-03-01T12:00:00")
    return folder


def test_a_file_and_its_changes(repository: Path) -> None:
    commit = git(repository, "rev-parse", "--short=12", "HEAD")
    known = commit_of(repository / "config.yaml")
    assert re.fullmatch(rf"{commit} of 20..-..-..", known or "")
    (repository / "config.yaml").write_text("a: 2\n")
    assert commit_of(repository / "config.yaml") == f"{known}, modified since"
    assert code_commit(repository) == known  # the code is as it was
    (repository / "evaluation" / "protocol.py").write_text("X = 2\n")
    assert code_commit(repository) == f"{known}, modified since"


def test_what_is_under_no_version_control(repository: Path, tmp_path: Path) -> None:
    """Also a file that merely lies in a repository, and code that was installed into one."""
    (repository / "other.yaml").write_text("b: 1\n")
    (tmp_path / "lone.yaml").write_text("b: 1\n")
    for path in (repository / "other.yaml", tmp_path / "lone.yaml", tmp_path / "none.yaml"):
        assert commit_of(path) is None
    (repository / "site-packages").mkdir()
    assert code_commit(repository / "site-packages") is None


def test_a_run_says_where_its_configuration_comes_from(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, "")
    config = next(iter(make_plans(tmp_path).values())).config
    content = config.model_dump(mode="json", exclude_defaults=True)
    files = [repository / "config.yaml"]
    made, path = run_config(content, True, files)
    keep_config(made, files)
    origin = f"config.yaml at {commit_of(repository / 'config.yaml')}"
    assert origin_of(made) == origin
    assert validate_config(content, "again", files) == made
    assert write_effective(made).absolute() == path
    assert origin_of(made) == origin  # written again without a word of it, it stays
    keep_config(run_config(content, True, [path])[0], [path])  # as the watcher does
    assert origin_of(made) == origin
