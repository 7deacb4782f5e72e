"""Compiled kernels that jobs share: a second one compiles nothing, and a broken cache breaks nothing."""

import errno
import gzip
import importlib.metadata
import json
import logging
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from evaluation.checkpoints.format import open_checkpoint
from evaluation.scoring.engine import compile_cache
from evaluation.scoring.engine.compile_cache import MOST, CompileCache

JOB = """
import json, sys
from pathlib import Path
import torch
from torch._dynamo.utils import counters
from evaluation.scoring.engine.compile_cache import CompileCache

cache = CompileCache(Path(sys.argv[1]), "model")
taken = cache.load()
product = torch.compile(torch.mm, dynamic=False, fullgraph=True)
with torch.inference_mode():
    found = product(torch.full((4, 8), 2.0), torch.ones(8, int(sys.argv[2])))
assert (found == 16).all()
said = counters["inductor"]
wrote = cache.keep()
print(json.dumps([taken, said["fxgraph_cache_hit"], said["fxgraph_cache_miss"], wrote, cache.keep()]))
"""


def job(cache: Path, node: Path, width: int = 8) -> list[int]:
    """Graphs taken over, found and compiled, and whether it wrote; of a process on its own node."""
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(cache), str(width)],
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(node)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[int] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_second_job_compiles_nothing(tmp_path: Path) -> None:
    """Counted by inductor itself, on nodes that share nothing but the cache."""
    cache = tmp_path / "shared"
    assert job(cache, tmp_path / "node1") == [0, 0, 1, True, False]
    taken, hits, misses, wrote, again = job(cache, tmp_path / "node2")
    assert (taken > 0, hits, misses, wrote, again) == (True, 1, 0, False, False)
    assert len(list(cache.iterdir())) == 1


class StandIn:
    """PyTorch's two calls, with artifacts that say what they are."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keys: list[str] = []
        self.loaded: list[bytes] = []
        monkeypatch.setattr(torch.compiler, "save_cache_artifacts", self.save)
        monkeypatch.setattr(torch.compiler, "load_cache_artifacts", self.load)

    def save(self) -> object:
        return (as_payload(self.keys), as_info(self.keys)) if self.keys else None

    def load(self, payload: bytes) -> object:
        self.loaded.append(payload)
        return as_info(json.loads(payload))


def as_payload(keys: list[str]) -> bytes:
    return json.dumps(keys).ljust(100_000).encode()


def as_info(keys: list[str]) -> object:
    return SimpleNamespace(artifacts={"inductor": keys})


def keys_in(path: Path) -> list[str]:
    found: list[str] = json.loads(gzip.decompress(path.read_bytes()))
    return found


@pytest.fixture
def torch_cache(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return StandIn(monkeypatch)


@pytest.fixture(autouse=True)
def own_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "node"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "node/triton"))


def test_only_what_is_new_is_written(tmp_path: Path, torch_cache: StandIn) -> None:
    first = CompileCache(tmp_path / "c", "m")
    assert (first.load(), first.keep()) == (0, False)
    torch_cache.keys = ["a", "b"]
    assert (first.keep(), first.keep()) == (True, False)
    torch_cache.keys = ["a"]
    second = CompileCache(tmp_path / "c", "m")
    assert (second.load(), second.keep()) == (2, False)
    assert len(torch_cache.loaded) == 1
    torch_cache.keys = ["a", "c"]
    assert second.keep()
    other = CompileCache(tmp_path / "c", "other")
    assert other.load() == 0
    assert CompileCache(tmp_path / "c", "m").load() == 3


def test_one_file_of_a_job_that_compiles_more_and_more(
    tmp_path: Path, torch_cache: StandIn
) -> None:
    """What another wrote stays, also if it is less."""
    torch_cache.keys = ["a"]
    assert CompileCache(tmp_path, "m").keep()
    torch_cache.keys = ["b"]
    cache = CompileCache(tmp_path, "m")
    cache.load()
    for keys in (["b"], ["b", "c"], ["b", "c", "d"]):
        torch_cache.keys = keys
        assert cache.keep()
    assert sorted(map(keys_in, tmp_path.glob("m-*"))) == [["a"], ["b", "c", "d"]]
    assert CompileCache(tmp_path, "m").load() == 4


def test_the_oldest_go(tmp_path: Path, torch_cache: StandIn) -> None:
    for number in range(MOST + 3):
        torch_cache.keys = [f"key{number}"]
        assert CompileCache(tmp_path, "m").keep()
        path = max(tmp_path.glob("m-*"), key=lambda each: each.stat().st_ctime_ns)
        os.utime(path, (number, number))
    left = [keys_in(path) for path in tmp_path.glob("m-*")]
    assert len(left) == MOST
    assert ["key0"] not in left
    assert [f"key{MOST + 2}"] in left


def _at_once(folder: Path, number: int, start: object, results: object) -> None:
    """A job among many: half of them have compiled the same."""
    keys = ["same"] if number % 2 else [f"own{number}"]
    torch.compiler.save_cache_artifacts = lambda: (as_payload(keys), as_info(keys))
    torch.compiler.load_cache_artifacts = lambda given: as_info(json.loads(given))
    warnings: list[object] = []
    compile_cache.log.warning = lambda *about: warnings.append(about)  # type: ignore[method-assign]
    start.wait()  # type: ignore[attr-defined]
    cache = CompileCache(folder, "m")
    cache.load()
    cache.keep()
    results.put((warnings, CompileCache(folder, "m").load() > 0))  # type: ignore[attr-defined]


def test_many_jobs_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(8), context.Queue()
    jobs = [
        context.Process(target=_at_once, args=(tmp_path / "c", n, start, results)) for n in range(8)
    ]
    for one in jobs:
        one.start()
    found = [results.get(timeout=60) for _ in jobs]
    for one in jobs:
        one.join(60)
    assert found == [([], True)] * 8
    there = sorted(key for path in (tmp_path / "c").glob("m-*.artifacts") for key in keys_in(path))
    assert there == ["own0", "own2", "own4", "own6", "same"]
    assert len(os.listdir(tmp_path / "c")) == 5


def _flipped(content: bytes) -> bytes:
    return content[:-5] + bytes([content[-5] ^ 1]) + content[-4:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "another file": lambda content: b"\x80\x04" + content,
    "cut": lambda content: content[: len(content) // 2],
    "cut in its header": lambda content: content[:5],
    "a bit": _flipped,
    "longer": lambda content: content + b"x",
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file(
    tmp_path: Path, torch_cache: StandIn, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """Is never handed to PyTorch, is told of in one sentence, and is written anew."""
    torch_cache.keys = ["a"]
    CompileCache(tmp_path, "m").keep()
    path = next(tmp_path.glob("m-*"))
    path.write_bytes(DAMAGES[name](path.read_bytes()))
    cache = CompileCache(tmp_path, "m")
    assert cache.load() == 0
    assert torch_cache.loaded == []
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    for part in (str(path), "compiles for itself", "delete it"):
        assert part in caplog.text
    assert cache.keep()
    assert CompileCache(tmp_path, "m").load() == 1


@pytest.mark.parametrize("answer", ["none", "raises", "PyTorch's own"])
def test_what_pytorch_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, answer: str
) -> None:
    """Whole, but of no use: PyTorch says so itself, or fails at it."""

    def load(payload: bytes) -> None:
        if answer == "raises":
            raise KeyError("artifact")

    if answer != "PyTorch's own":
        monkeypatch.setattr(torch.compiler, "load_cache_artifacts", load)
    (tmp_path / "m-1.artifacts").write_bytes(gzip.compress(os.urandom(500)))
    assert CompileCache(tmp_path, "m").load() == 0
    assert "compiles for itself" in caplog.text


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO]
)
def test_a_cache_that_cannot_be_written(
    tmp_path: Path,
    torch_cache: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    number: int,
) -> None:
    """One warning for the whole job, nothing left behind, and no second try."""
    tries = []

    def full(descriptor: int) -> None:
        tries.append(descriptor)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    torch_cache.keys = ["a"]
    cache = CompileCache(tmp_path / "c", "m")
    assert (cache.keep(), cache.keep()) == (False, False)
    assert len(tries) == 1
    assert len(caplog.records) == 1
    assert os.strerror(number) in caplog.text
    assert "gives the same numbers" in caplog.text
    assert os.listdir(tmp_path / "c") == []


def test_a_file_in_the_way(
    tmp_path: Path, torch_cache: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "c").write_text("")
    torch_cache.keys = ["a"]
    cache = CompileCache(tmp_path / "c", "m")
    assert (cache.load(), cache.keep()) == (0, False)
    assert len(caplog.records) == 1


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
