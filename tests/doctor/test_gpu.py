"""GPUs that are dead, held by others, or not there, and which of them CUDA_VISIBLE_DEVICES names."""

import re
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
import torch

from evaluation.doctor.machine import check_gpu
from evaluation.errors import ConfigError, ScoringError
from evaluation.scoring.engine import gpus
from evaluation.scoring.engine.device import choose_device
from evaluation.scoring.engine.gpus import Gpu, check_free, read_gpus, visible_gpus
from tests.doctor.conftest import HOLDER, Nvml, card, only, stopped
from tests.tables import cases

FREE, FULL = card(3), card(60010, 81920, HOLDER)
SECOND = Gpu("1", "GPU-bbb", "NVIDIA A100", 4, 81920)
PARTS = (
    Gpu("0", "MIG-1c2d", "NVIDIA A100 MIG 3g.40gb", 37, 40320),
    Gpu("0", "MIG-77ee", "NVIDIA A100 MIG 1g.10gb", 9000, 9728),
)
DIVIDED = replace(FULL, parts=PARTS)
BUSY = replace(SECOND, used=60010)


def test_a_dead_gpu(nvml: Nvml) -> None:
    nvml(ScoringError("NVML fails on this node (GPU is lost)"))
    assert stopped() == only(check_gpu()) == "NVML fails on this node (GPU is lost)"
    assert choose_device("cpu") == "cpu"


@pytest.mark.parametrize(
    ("there", "shown", "count", "held"),
    [
        ([FULL, SECOND], None, 1, f"GPU 0 .* 60,010 of 81,920 MiB .* {re.escape(HOLDER)}"),
        ([card(60010)], None, 1, "processes that this user cannot see"),
        ([FREE, BUSY], None, 1, None),
        ([FREE, BUSY], None, 2, "GPU 1 .* 60,010 of 81,920 MiB"),
        ([DIVIDED, SECOND], "1", 1, None),
        ([DIVIDED, SECOND], "0", 1, None),  # not what all of its parts hold together
        ([DIVIDED, SECOND], "MIG-77ee", 1, r"MIG 1g.10gb\): 9,000 of 9,728 MiB are held"),
    ],
)
def test_a_gpu_is_free_or_named_with_its_holder(
    nvml: Nvml, there: list[Gpu], shown: str | None, count: int, held: str | None
) -> None:
    nvml(there, shown=shown)
    if held is None:
        assert check_free(count, patience=0) is None
        return
    with pytest.raises(ScoringError, match=held):
        check_free(count, patience=0)
    assert re.search(held, check_gpu().findings[0].sentence)


def test_another_gpu_that_is_held_is_a_warning(nvml: Nvml) -> None:
    nvml([FREE, BUSY])
    assert check_gpu().findings[0].state == "warning"


def test_memory_of_its_own_is_not_anothers(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job's second checkpoint comes to a GPU on which its first one was scored."""
    nvml([FULL])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert choose_device("auto") == "cuda"


@pytest.mark.parametrize(
    ("gpu", "word"),
    [
        (card(9000, 81920, "process 7 (python)"), "9,000 of 81,920 MiB are held by process 7"),
        (card(None), "whether others hold it is not checked"),
    ],
)
def test_what_only_is_remarked(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch, gpu: Gpu, word: str
) -> None:
    nvml([gpu])
    assert word in (check_free(patience=0) or "")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert word in only(check_gpu(), "warning")


def test_a_gpu_that_is_given_back_is_waited_for(nvml: Nvml) -> None:
    nvml([FULL], [FREE])
    assert check_free(patience=30) is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch has a GPU here")
def test_a_gpu_that_pytorch_cannot_use(nvml: Nvml) -> None:
    """A job that was given it stops; without being given one it goes on on the CPU."""
    nvml([FREE])
    with pytest.raises(ConfigError, match="PyTorch sees no GPU"):
        choose_device("cuda")
    assert choose_device("auto") == "cpu"
    nvml([FREE], shown="0")
    assert "cannot use it" in stopped()
    assert only(check_gpu()) == stopped()


@pytest.mark.parametrize(
    ("there", "value", "shown"),
    [
        ([FREE, SECOND], None, ["GPU-aaa", "GPU-bbb"]),
        ([FREE, SECOND], " 1 , 0 ", ["GPU-bbb", "GPU-aaa"]),
        ([FREE, SECOND], "GPU-b", ["GPU-bbb"]),
        ([FREE, SECOND], "0,-1,1", ["GPU-aaa"]),
        ([FREE, SECOND], "", []),
        ([FREE, SECOND], "-1", []),
        ([FREE, SECOND], "NoDevFiles", []),
        ([FREE, SECOND], "MIG-9a", ["MIG-9a"]),  # of which this NVML lists none
        ([DIVIDED, SECOND], None, ["MIG-1c2d", "GPU-bbb"]),
        ([DIVIDED, SECOND], "0", ["MIG-1c2d"]),
        ([DIVIDED, SECOND], "MIG-77", ["MIG-77ee"]),
    ],
)
def test_which_gpus_are_shown(
    nvml: Nvml, there: list[Gpu], value: str | None, shown: list[str]
) -> None:
    nvml(there, shown=value)
    assert [gpu.uuid for gpu in visible_gpus()] == shown


@pytest.mark.parametrize(("value", "word"), cases("doctor/tables", "a_name_of_no_gpu"))
def test_a_name_of_no_gpu(nvml: Nvml, value: str, word: str) -> None:
    """CUDA would show none, or fewer, and the job take days on the CPU."""
    nvml([DIVIDED, SECOND], shown=value)
    assert f"CUDA_VISIBLE_DEVICES={value} names {word}" in stopped()
    assert only(check_gpu()) == stopped()
    assert choose_device("cpu") == "cpu"


def answer(monkeypatch: pytest.MonkeyPatch, **found: Any) -> None:
    """Sets what functions of NVML give or, being errors, raise."""

    def function(value: Any) -> Any:
        def call(*arguments: Any) -> Any:
            given = value(*arguments) if callable(value) else value
            if isinstance(given, Exception):
                raise given
            return given

        return call

    for name, value in {"Init": None, "Shutdown": None, **found}.items():
        monkeypatch.setattr(pynvml, f"nvml{name}", function(value))


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, None),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, None),
        (pynvml.NVML_ERROR_GPU_IS_LOST, "GPU is lost"),
        (pynvml.NVML_ERROR_UNKNOWN, "Unknown Error"),
    ],
)
def test_errors_of_nvml(monkeypatch: pytest.MonkeyPatch, error: int, word: str | None) -> None:
    answer(monkeypatch, Init=pynvml.NVMLError(error))
    if word is None:
        assert read_gpus() == []
        return
    with pytest.raises(ScoringError, match=f"{word}.*--exclude"):
        read_gpus()


def test_a_query_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, Init=lambda: time.sleep(5))
    monkeypatch.setattr(gpus, "ANSWER_SECONDS", 0.1)
    with pytest.raises(ScoringError, match="does not respond"):
        read_gpus()


def test_gpus_and_their_parts_as_nvml_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is divided, and its own memory may not be known to users."""
    memory = {
        "whole": pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION),
        "part": SimpleNamespace(used=9000 << 20, total=9728 << 20),
        "second": SimpleNamespace(used=4 << 20, total=81920 << 20),
    }
    divided = {
        "whole": (1, 1),
        "part": pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT),
        "second": pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED),
    }
    holder = SimpleNamespace(pid=4242, usedGpuMemory=None)
    answer(
        monkeypatch,
        DeviceGetCount=2,
        DeviceGetHandleByIndex=["whole", "second"].__getitem__,
        DeviceGetUUID=lambda handle: f"UUID of {handle}",
        DeviceGetName=lambda handle: f"name of {handle}",
        DeviceGetMemoryInfo=memory.__getitem__,
        DeviceGetMigMode=divided.__getitem__,
        DeviceGetMaxMigDeviceCount=2,
        DeviceGetMigDeviceHandleByIndex=lambda _, place: (
            "part" if place else pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        ),
        DeviceGetComputeRunningProcesses=lambda handle: [holder] if handle == "part" else [],
        SystemGetProcessName="python",
    )
    part = Gpu("0", "UUID of part", "name of part", 9000, 9728, ("process 4242 (python)",))
    assert read_gpus() == [
        Gpu("0", "UUID of whole", "name of whole", None, None, (), (part,)),
        Gpu("1", "UUID of second", "name of second", 4, 81920),
    ]
