"""Compiled kernels that jobs share: a second one compiles nothing, and a broken cache breaks nothing."""

import errno
import importlib.metadata
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from evaluation.checkpoints.format import open_checkpoint
from evaluation.scoring.engine import compile_cache
from evaluation.scoring.engine.compile_cache import MOST, CompileCache, use_node_folder

JOB = """
import json, sys
from pathlib import Path
import torch
from torch._dynamo.utils import counters
from evaluation.scoring.engine.compile_cache import CompileCache

cache = CompileCache(Path(sys.argv[1]), "model")
cache.load()
product = torch.compile(torch.mm, dynamic=False, fullgraph=True)
for width in (8, 16, 24):
    with torch.inference_mode():
        found = product(torch.full((4, 8), 2.0), torch.ones(8, width))
    assert (found == 16).all()
    cache.keep()
counted = counters["inductor"]
print(json.dumps([counted["fxgraph_cache_hit"], counted["fxgraph_cache_miss"]]))
"""


def job(cache: Path, node: Path) -> list[int]:
    """Graphs found and compiled, by a process on its own node."""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(node)}
    command = [sys.executable, "-c", JOB, str(cache)]
    found: list[int] = json.loads(
        subprocess.check_output(command, env=environment).splitlines()[-1]
    )
    return found


def test_a_second_job_compiles_nothing(tmp_path: Path) -> None:
    """Counted by inductor itself, on nodes that share nothing but the cache.

    The first saves after each of three graphs, of which PyTorch loads only the last from a file.
    """
    cache = tmp_path / "shared"
    assert job(cache, tmp_path / "node1") == [0, 3]
    written = files(cache)
    assert job(cache, tmp_path / "node2") == [3, 0]
    assert files(cache) == written


@pytest.fixture(autouse=True)
def own_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "node"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "node/triton"))
    compile_product(8)


pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


def compile_product(width: int) -> None:
    """Have inductor compile a product, unless this process has done so."""
    with torch.inference_mode():
        torch.compile(torch.mm, dynamic=False, fullgraph=True)(
            torch.ones(4, 8), torch.ones(8, width)
        )


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def files(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir()}


def test_a_job_that_compiles_more_adds_a_file(tmp_path: Path) -> None:
    """All others stay, up to MOST; then the oldest go."""
    cache = tmp_path / "shared"
    CompileCache(cache, "model").keep()
    others = files(cache)
    second = CompileCache(cache, "model")
    second.load()
    second.keep()
    assert files(cache) == others
    compile_product(16)
    second.keep()
    second.keep()
    assert len(files(cache)) == 2
    assert others < files(cache)
    for number in range(MOST):
        path = cache / f"model-{number}.artifacts"
        path.touch()
        os.utime(path, (number, number))
    compile_product(24)
    second.keep()
    assert len(files(cache)) == MOST
    assert others < files(cache)
    assert "model-0.artifacts" not in files(cache)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "a bit": lambda content: content[:-5] + bytes([content[-5] ^ 1]) + content[-4:],
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    """Is reported in one sentence, and written anew."""
    CompileCache(tmp_path, "m").keep()
    path = next(tmp_path.glob("m-*"))
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[name](whole))
    cache = CompileCache(tmp_path, "m")
    cache.load()
    (warning,) = warnings(caplog)
    for part in (str(path), "compiles for itself", "gives the same numbers", "delete it"):
        assert part in warning
    cache.keep()
    CompileCache(tmp_path, "m").load()
    assert len(warnings(caplog)) == 1


def test_a_cache_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning for the whole job, nothing left behind, and no second try."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    cache = CompileCache(tmp_path / "c", "m")
    cache.keep()
    cache.keep()
    (warning,) = warnings(caplog)
    assert os.strerror(errno.ENOSPC) in warning
    assert os.listdir(tmp_path / "c") == []
    (tmp_path / "file").write_text("")
    in_the_way = CompileCache(tmp_path / "file", "m")
    in_the_way.load()
    in_the_way.keep()
    assert len(warnings(caplog)) == 2


def test_each_kind_of_gpu_and_model_has_its_own(shared: Path, tmp_path: Path) -> None:
    checkpoint = open_checkpoint(shared / "fixtures/nanotron/qwen2_moe_tp1")
    make = compile_cache.compile_cache
    plain = make(tmp_path, checkpoint, "bfloat16", "NVIDIA H100 80GB HBM3")
    assert plain.folder.parent == tmp_path / "compiled"
    assert plain.folder.name.endswith("_NVIDIA-H100-80GB-HBM3")
    assert f"torch-{importlib.metadata.version('torch')}" in plain.folder.name
    assert make(tmp_path, checkpoint, "bfloat16", "A100/..").folder.parent == plain.folder.parent
    assert make(tmp_path, checkpoint, "bfloat16", "A100").folder != plain.folder
    assert make(tmp_path, checkpoint, "float32", "A100").model != plain.model


def test_the_users_own_folder_on_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is used if it can be written to; else there is a warning."""
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
    code = (
        "import os; from evaluation.scoring.engine import compile_cache as c; c.LEAST_FREE = 1; "
        "print(f := c.use_node_folder()); print(oct(os.stat(f).st_mode))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "TORCHINDUCTOR_CACHE_DIR"}
    environment["TMPDIR"] = str(tmp_path)
    command = [sys.executable, "-c", code]
    done = [subprocess.check_output(command, env=environment, text=True) for _ in range(2)]
    (first, _), (second, _) = found = [one.split() for one in done]
    assert first != second
    for folder, mode in found:
        assert Path(folder).parent == tmp_path
        assert mode == "0o40700"
        assert not Path(folder).exists()
