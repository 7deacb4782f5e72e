"""The folder on a node in which kernels are compiled: the user's own, or one that nobody else may fill."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.scoring.engine import compile_cache
from evaluation.scoring.engine.compile_cache import use_node_folder


@pytest.fixture(autouse=True)
def own_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "node"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "node/triton"))


def test_the_users_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is set is kept if it can be written to; else there is a warning."""
    assert use_node_folder() == tmp_path / "node"
    monkeypatch.setattr(compile_cache, "LEAST_FREE", 1 << 60)
    assert use_node_folder() is None
    assert "MB left); set TMPDIR" in caplog.text
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "file/in"))
    assert use_node_folder() is None
    assert f"{tmp_path / 'file/in'}: nothing can be compiled there (Not a directory)" in caplog.text


def test_a_folder_that_goes_with_its_process(tmp_path: Path) -> None:
    """Nobody else may write to it, nor know its name beforehand."""
    look = "import os; from evaluation.scoring.engine import compile_cache as c; c.LEAST_FREE = 1; "
    told = "print(f := c.use_node_folder()); print(oct(os.stat(f).st_mode))"
    others = {k: v for k, v in os.environ.items() if k != "TORCHINDUCTOR_CACHE_DIR"}
    chosen = set()
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", look + told],
            env={**others, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        folder, mode = done.stdout.split()
        assert Path(folder).parent == tmp_path
        assert mode == "0o40700"
        assert not Path(folder).exists()
        chosen.add(folder)
    assert len(chosen) == 2
