"""What a run finds in the place of its outputs as it starts."""

import os
from pathlib import Path

from evaluation.orchestration.hooks import remove_special_files


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
