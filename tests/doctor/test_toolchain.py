"""A driver too old for this PyTorch, a compiler that is not there, and GPUs of AMD."""

import os
import re
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from evaluation.doctor.machine import check_gpu
from evaluation.errors import ConfigError
from evaluation.scoring.engine import device, gpus
from evaluation.scoring.engine.device import (
    check_dtype,
    choose_device,
    compiler_fault,
    driver_fault,
)
from tests.doctor.conftest import Nvml, card, only, program, stopped
from tests.tables import cases


@pytest.mark.parametrize(("built", "driver", "words"), cases("doctor/tables", "drivers"))
def test_drivers(
    monkeypatch: pytest.MonkeyPatch, built: str | None, driver: str | None, words: list[str] | None
) -> None:
    monkeypatch.setattr(torch.version, "cuda", built)
    fault = driver_fault(driver)
    assert (fault is None) == (words is None)
    for word in words or ():
        assert word in (fault or "")


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch has a GPU here")
def test_an_old_driver_is_named_by_doctor_and_by_the_job(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml([card(3)], shown="0")
    monkeypatch.setattr(device, "driver_version", lambda: "535.129.03")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    for word in ("GPU 0 (NVIDIA A100)", "the driver is 535.129.03", "scoring.device: cpu"):
        assert word in stopped()
    assert only(check_gpu()) == stopped()


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


def without_cuda(tools: Path, patch: pytest.MonkeyPatch) -> None:
    (tools / "gcc").unlink()
    patch.setattr(torch.version, "cuda", None)


Change = Callable[[Path, pytest.MonkeyPatch], object]
COMPILERS: dict[str, tuple[Change, str | None]] = {
    "gcc": (lambda tools, patch: None, None),
    "clang alone": (lambda tools, patch: (tools / "gcc").rename(tools / "clang"), None),
    "another CC": (another_cc, None),
    "headers elsewhere": (headers_elsewhere, None),
    "no CUDA and no gcc": (without_cuda, None),
    "no gcc": (lambda tools, patch: (tools / "gcc").unlink(), "neither gcc nor clang on PATH"),
    "a wrong CC": (lambda tools, patch: patch.setenv("CC", "/opt/gone/gcc"), "CC=/opt/gone/gcc is not a program"),
    "no headers": (lambda tools, patch: (tools / "Python.h").unlink(), "Python.h is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPILERS)
def test_compilers(tools: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    change, word = COMPILERS[name]
    change(tools, monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    fault = compiler_fault()
    assert choose_device("auto") == "cuda"
    assert (fault is None) == (word is None)
    assert fault is None or (word in fault and "every node with a GPU" in fault)


@pytest.fixture
def amd(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU of AMD under a ROCm build, on which asking NVML is an error."""

    def asked(*_: object) -> None:
        raise AssertionError("NVML")

    monkeypatch.setattr(gpus, "_ask_nvml", asked)
    monkeypatch.setattr(torch.version, "hip", "7.0")
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "AMD Instinct MI300X")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (191 << 30, 192 << 30))


def test_amd(tools: Path, amd: None, monkeypatch: pytest.MonkeyPatch) -> None:
    check = check_gpu()
    assert (check.state, check.summary) == ("ok", "GPU 0 (AMD Instinct MI300X)")
    assert choose_device("auto") == "cuda"
    check_dtype("cuda", "bfloat16")
    (tools / "gcc").unlink()
    assert "neither gcc nor clang" in only(check_gpu(), "warning")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (1 << 30, 192 << 30))
    assert "195,584 of 196,608 MiB are held" in check_gpu().findings[0].sentence

    def dead(*_: object) -> None:
        raise torch.AcceleratorError("HIP error: hipErrorNoDevice\nmore")

    monkeypatch.setattr(torch.cuda, "mem_get_info", dead)
    assert re.search(r"not respond \(HIP error: .*Device\); .*--exclude", stopped())


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch has a GPU here")
def test_an_amd_gpu_under_a_build_without_rocm(
    tmp_path: Path, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml([])
    monkeypatch.setattr(device, "AMD_DRIVER", tmp_path)
    assert "built without ROCm" in only(check_gpu(), "warning")
    assert choose_device("auto") == "cpu"
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "0")
    assert "install a build with it" in stopped()


def test_bfloat16_before_ampere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "Tesla V100-SXM2-32GB")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (7, 5))
    check_dtype("cuda", "float32")
    with pytest.raises(ConfigError, match=r"V100.* bfloat16; set scoring.dtype: float32"):
        check_dtype("cuda", "bfloat16")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (8, 0))
    check_dtype("cuda", "bfloat16")


def test_before_cuda_is_asked_its_order_is_set_and_products_are_exact(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a container allows TF32 (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE)."""
    nvml([card(3)])
    monkeypatch.setattr(device, "check_free", lambda _: None)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    orders = []
    for name in ("is_initialized", "is_available"):
        monkeypatch.setattr(
            torch.cuda, name, lambda: orders.append(os.environ.get("CUDA_DEVICE_ORDER")) or True
        )
    torch.set_float32_matmul_precision("high")
    try:
        assert choose_device("auto") == "cuda"
        assert torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert set(orders) == {"PCI_BUS_ID"}
