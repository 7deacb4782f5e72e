"""Folders on a node in which compiled kernels are kept: its user's own, and never one that others may fill."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.scoring.engine import compile_cache
from evaluation.scoring.engine.compile_cache import use_node_folder


@pytest.fixture(autouse=True)
def own_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "node"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "node/triton"))


def test_the_nodes_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is set is kept if it can be written to; else another, and a warning."""
    assert use_node_folder() == tmp_path / "node"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "file/in"))
    monkeypatch.setattr(compile_cache, "_temporary", lambda: [str(tmp_path / "tmp")])
    monkeypatch.setattr(compile_cache, "LEAST_FREE", 1)
    chosen = use_node_folder()
    assert chosen == tmp_path / "tmp" / f"torchinductor_{os.getuid()}"
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(chosen)
    assert "cannot be used" in caplog.text
    monkeypatch.setattr(compile_cache, "LEAST_FREE", 1 << 60)
    assert use_node_folder() is None
    assert "set TMPDIR" in caplog.text


def link(place: Path, elsewhere: Path) -> None:
    elsewhere.mkdir()
    place.symlink_to(elsewhere)


FOREIGN: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "a link": (link, "it is a link or a file"),
    "a link to nowhere": (lambda place, there: place.symlink_to(there), "it is a link or a file"),
    "a file": (lambda place, _: place.write_text(""), "it is a link or a file"),
    "of another user": (lambda place, _: (place.mkdir(), os.chown(place, 12345, -1)), "it belongs to user 12345"),
    "open to all": (lambda place, _: (place.mkdir(), place.chmod(0o777)), "anybody may write to it"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_folder_that_another_user_may_have_filled(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if name == "of another user" and os.geteuid() != 0:
        pytest.skip("only root may give a folder away")
    make, told = FOREIGN[name]
    place, elsewhere = tmp_path / f"torchinductor_{os.getuid()}", tmp_path / "elsewhere"
    make(place, elsewhere)
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    monkeypatch.setattr(compile_cache, "_temporary", lambda: [str(tmp_path)])
    monkeypatch.setattr(compile_cache, "_NODE_FOLDERS", ())
    monkeypatch.setattr(compile_cache, "LEAST_FREE", 1)
    chosen = use_node_folder()
    assert chosen is not None
    assert chosen.name.startswith(f"torchinductor_{os.getuid()}_")
    assert chosen.stat().st_mode & 0o777 == 0o700
    assert told in caplog.text
    assert not elsewhere.exists() or not any(elsewhere.iterdir())
    monkeypatch.setattr(compile_cache, "_NODE_FOLDERS", (str(tmp_path / "var"),))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    assert use_node_folder() == tmp_path / "var" / place.name
