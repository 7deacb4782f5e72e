"""Outputs of commands: over nothing that the command reads, and over no result of the workflow."""

from pathlib import Path

import pytest

from evaluation.errors import OutputError
from evaluation.input_files import STANDARD
from evaluation.output_files import check_replaces_nothing, output_file
from evaluation.records import write_record


def test_new_files_and_those_of_the_user_are_written(tmp_path: Path) -> None:
    for path in (tmp_path / "new", tmp_path / "no/such/folder/new"):
        assert output_file(path, [tmp_path / "absent"]) == path
    (tmp_path / "mine").write_text("1")
    write_record(tmp_path, "collect", "key", [])
    assert output_file(tmp_path / "mine", [tmp_path]) == tmp_path / "mine"
    (tmp_path / "link").symlink_to("mine")
    assert output_file(tmp_path / "link") == tmp_path / "mine"


@pytest.mark.parametrize("name", ["read", "link", "hard"])
def test_what_the_command_reads(tmp_path: Path, name: str) -> None:
    (read := tmp_path / "read").write_text("1")
    (tmp_path / "link").symlink_to("read")
    (tmp_path / "hard").hardlink_to(read)
    with pytest.raises(OutputError, match="is read by the same command, and would be replaced"):
        output_file(tmp_path / name, [tmp_path / "absent", read])


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (read := tmp_path / "read").write_text("1")
    with read.open() as standard_input:
        monkeypatch.setattr("sys.stdin", standard_input)
        with pytest.raises(OutputError, match="is read by the same command"):
            output_file(read, [STANDARD])
        assert output_file(tmp_path / "new", [STANDARD]) == tmp_path / "new"
    with open("/dev/null") as standard_input:  # as a terminal, it may be read and written
        monkeypatch.setattr("sys.stdin", standard_input)
        check_replaces_nothing(Path("/dev/null"), [STANDARD])


@pytest.mark.parametrize("name", ["generation/t/prompts.parquet", "tier2_ppl.json"])
def test_results(tmp_path: Path, name: str) -> None:
    path = tmp_path / "step_10" / name
    path.parent.mkdir(parents=True)
    path.write_text("1")
    write_record(tmp_path / "step_10", "collect", "key", [path])
    (tmp_path / "link").symlink_to(path)
    for given in (path, tmp_path / "link"):
        with pytest.raises(OutputError, match=r"is a result of the workflow, recorded in .*\.made"):
            output_file(given)


def test_the_score_store(tmp_path: Path) -> None:
    path = tmp_path / "scores/abc/a.parquet"
    path.parent.mkdir(parents=True)
    path.write_text("1")
    assert output_file(path) == path
    write_record(tmp_path, "front", "key")
    with pytest.raises(OutputError, match="belongs to the score store"):
        output_file(path)
