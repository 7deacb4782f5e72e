"""GPUs that PyTorch cannot use, that others hold, or that compute otherwise."""

import logging
import os
from pathlib import Path

import pytest
import torch

from evaluation.doctor.machine import check_gpu
from evaluation.errors import ConfigError, ScoringError
from evaluation.scoring import visible_gpus
from evaluation.scoring.engine.device import check_dtype, choose_device
from evaluation.scoring.visible_gpus import holders
from tests.doctor.conftest import HOLDER, Held, only, program

without_a_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch has a GPU here")


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with the driver of a GPU."""
    monkeypatch.setattr(visible_gpus, "DRIVERS", ("/nowhere", str(tmp_path)))
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS"):
        monkeypatch.delenv(name, raising=False)


@without_a_gpu
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUDA_VISIBLE_DEVICES", "0"),
        ("CUDA_VISIBLE_DEVICES", "GPU-8932f937"),
        ("SLURM_JOB_GPUS", "2"),
    ],
)
def test_a_job_that_was_given_a_gpu_never_runs_on_the_cpu(
    name: str, value: str, driver: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ScoringError, match=r"cannot use a GPU here: .*; .* scoring\.device: cpu"):
        choose_device("auto")
    assert "cannot use a GPU here" in only(check_gpu())
    assert choose_device("cpu") == "cpu"


@without_a_gpu
@pytest.mark.parametrize("value", [None, "", "-1", "NoDevFiles"])
def test_a_job_that_was_given_none_says_why_it_runs_on_the_cpu(
    value: str | None,
    driver: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if value is not None:
        monkeypatch.setenv("SLURM_JOB_GPUS", "2")  # which the step has not
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert choose_device("auto") == "cpu"
    assert "the CPU is used" in caplog.text
    with pytest.raises(ScoringError, match="cannot use a GPU here"):
        choose_device("cuda")


@without_a_gpu
def test_a_machine_without_a_gpu(
    driver: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where Slurm simulates some."""
    monkeypatch.setattr(visible_gpus, "DRIVERS", ("/nowhere",))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert choose_device("auto") == "cpu"
    assert check_gpu().state == "ok"
    assert caplog.records == []


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "NVIDIA A100")


def test_who_holds_its_memory_is_named(
    held: Held, one_gpu: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    held(f"{os.getpid()}, 500 MiB, python", "4242, 60000 MiB, /usr/bin/python", gpu="3")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert choose_device("auto") == "cuda"
    assert [one.getMessage() for one in caplog.records] == [
        f"the GPU's memory is also held by {HOLDER}"
    ]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert HOLDER in only(check_gpu(), "warning")
    caplog.set_level(logging.INFO)
    caplog.clear()
    held(gpu="3")
    assert choose_device("auto") == "cuda"
    assert caplog.records == []
    assert (check_gpu().state, check_gpu().summary) == ("ok", "NVIDIA A100")


@pytest.mark.parametrize("does", ["exit 9", "sleep 5", "echo nonsense", None])
def test_an_nvidia_smi_that_does_not_answer_names_nobody(
    does: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visible_gpus, "_PATIENCE", 0.5)
    if does is not None:
        program(tmp_path, "nvidia-smi", does)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin" if does else str(tmp_path))
    assert holders(["0"]) is None


def test_bfloat16_before_ampere(one_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def supported(including_emulation: bool) -> bool:
        return including_emulation

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    check_dtype("cuda", "float32")
    check_dtype("cpu", "bfloat16")
    with pytest.raises(
        ConfigError, match=r"does not compute in bfloat16; set scoring\.dtype: float32"
    ):
        check_dtype("cuda", "bfloat16")


def test_before_cuda_is_asked_its_order_is_set_and_products_are_exact(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a container allows TF32 (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE)."""
    held()
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    orders = []
    monkeypatch.setattr(
        torch.cuda,
        "is_available",
        lambda: orders.append(os.environ.get("CUDA_DEVICE_ORDER")) or True,
    )
    torch.set_float32_matmul_precision("high")
    try:
        assert choose_device("auto") == "cuda"
        assert torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert set(orders) == {"PCI_BUS_ID"}
