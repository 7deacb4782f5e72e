"""Outputs of commands: over nothing that the command reads, and over no result of the workflow."""

from pathlib import Path

import pytest

from evaluation.errors import OutputError
from evaluation.output_files import output_file
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
