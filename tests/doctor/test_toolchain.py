"""A driver too old for this PyTorch, and a compiler that is not there."""

import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from evaluation.doctor.gpu import check_gpu
from evaluation.errors import ScoringError
from evaluation.scoring.engine import device
from evaluation.scoring.engine.device import choose_device, compiler_fault, driver_fault
from tests.doctor.conftest import Nvml, card, only

ONE = [card(3)]


@pytest.mark.parametrize(
    ("built", "driver", "words"),
    [
        ("13.0", "580.65.06", None),
        ("13.0", "590.10", None),
        ("12.8", "525.60.13", None),
        ("12.8", "580.65.06", None),
        ("12.8", None, None),
        ("14.1", "400.1", None),  # what NVIDIA asks for is not known here
        ("13.0", "575.57.08", ["CUDA 13.0", "driver 580 or newer", "575.57.08", "for CUDA 12"]),
        ("13.0", "470.82.01", ["driver is 470.82.01", "exclude the node", "docs/gpu.md"]),
        ("12.4", "418.87.00", ["driver 525 or newer", "exclude the node"]),
        (None, "580.65.06", ["built without CUDA", "docs/gpu.md"]),
    ],
)
def test_drivers(
    monkeypatch: pytest.MonkeyPatch, built: str | None, driver: str | None, words: list[str] | None
) -> None:
    monkeypatch.setattr(torch.version, "cuda", built)
    said = driver_fault(driver)
    assert (said is None) == (words is None)
    for word in words or ():
        assert word in (said or "")


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch has a GPU here")
def test_an_old_driver_is_named_by_doctor_and_by_the_job(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml(ONE)
    monkeypatch.setattr(device, "driver_version", lambda: "535.129.03")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    sentence = only(check_gpu())
    for word in ("GPU 0 (NVIDIA A100)", "the driver is 535.129.03", "scoring.device: cpu"):
        assert word in sentence
    with pytest.raises(ScoringError) as caught:
        choose_device("auto")
    assert str(caught.value) == sentence


def program(folder: Path, name: str) -> None:
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with gcc and Python.h under a PyTorch with CUDA; a folder to break it in."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CC", "CPATH", "C_INCLUDE_PATH"):
        monkeypatch.delenv(name, raising=False)
    program(tmp_path, "gcc")
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr(sysconfig, "get_paths", lambda scheme: {"include": str(tmp_path)})
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    return tmp_path


def headers_elsewhere(tools: Path, patch: pytest.MonkeyPatch) -> None:
    (tools / "else").mkdir()
    (tools / "Python.h").rename(tools / "else/Python.h")
    patch.setenv("CPATH", f"/nowhere:{tools / 'else'}")


def another_cc(tools: Path, patch: pytest.MonkeyPatch) -> None:
    program(tools, "icx")
    patch.setenv("CC", str(tools / "icx"))


Change = Callable[[Path, pytest.MonkeyPatch], object]
COMPILERS: dict[str, tuple[Change, str | None]] = {
    "gcc": (lambda tools, patch: None, None),
    "clang alone": (lambda tools, patch: (tools / "gcc").rename(tools / "clang"), None),
    "another CC": (another_cc, None),
    "headers elsewhere": (headers_elsewhere, None),
    "no gcc": (lambda tools, patch: (tools / "gcc").unlink(), "neither gcc nor clang on PATH"),
    "a wrong CC": (lambda tools, patch: patch.setenv("CC", "/opt/gone/gcc"), "CC=/opt/gone/gcc is no program"),
    "no headers": (lambda tools, patch: (tools / "Python.h").unlink(), "Python.h is not there"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPILERS)
def test_compilers(tools: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    change, word = COMPILERS[name]
    change(tools, monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    said = compiler_fault()
    assert choose_device("auto") == "cuda"
    if word is None:
        assert said is None
        return
    assert said is not None
    assert word in said
    assert "every node with a GPU" in said


def test_doctor_tells_of_the_compiler(
    tools: Path, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml(ONE)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert check_gpu().state == "ok"
    (tools / "gcc").unlink()
    assert "neither gcc nor clang" in only(check_gpu(), "warning")


def test_without_cuda_no_compiler_is_asked_for(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tools / "gcc").unlink()
    monkeypatch.setattr(torch.version, "cuda", None)
    assert compiler_fault() is None
