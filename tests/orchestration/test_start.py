"""What a run finds in the place of its outputs as it starts, and how it is ended."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from snakemake.exceptions import format_exception_to_string

from evaluation.errors import EvaluationError
from evaluation.orchestration.hooks import remove_special_files
from evaluation.orchestration.stops import RunError, or_stop


def test_pipes_and_devices_in_the_place_of_results_are_removed(tmp_path: Path) -> None:
    """A copy of one would never end; files, links to files and folders stay, and what they lead to."""
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("x")
    folder.mkdir()
    (link := tmp_path / "link").symlink_to(file)
    (device := tmp_path / "device").symlink_to("/dev/zero")
    (broken := tmp_path / "broken").symlink_to("nowhere")
    os.mkfifo(pipe := tmp_path / "pipe")
    paths = [file, folder, link, device, broken, pipe, tmp_path / "absent"]
    remove_special_files(paths)
    assert [path for path in paths if os.path.lexists(path)] == [file, folder, link]
    assert Path("/dev/zero").exists()


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
