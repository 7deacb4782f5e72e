"""The GPUs that a process will use: do they answer, and are they free?

NVIDIA's library for monitoring (NVML) is asked, and given up where a dead GPU makes it hang. PyTorch
is asked for those of AMD.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pynvml  # type: ignore[import-untyped]
import torch

from evaluation.errors import ScoringError

T = TypeVar("T")

ANSWER_SECONDS = 30.0
"""After these, NVML is given up."""
HELD = 0.5
"""Part of a GPU's memory that others may use before a job on it is refused."""
NOTED = 0.05
"""Part that a driver and an idle desktop may use unmentioned."""

_NO_GPU = (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded)
_UNKNOWN_MEMORY = (pynvml.NVMLError_NotSupported, pynvml.NVMLError_NoPermission)
_OTHERS = "end it, choose another GPU by CUDA_VISIBLE_DEVICES, or have the node drained"
_NONE = ("", "-1", "NoDevFiles")
"""Values of CUDA_VISIBLE_DEVICES that mean no GPU, or none from there on; Slurm's is the last."""
_DRAIN = "exclude the node (`sbatch --exclude`), have it drained, and run again"


@dataclass(frozen=True)
class Gpu:
    """A GPU, or a part of one (MIG), and the other processes on it.

    Memory is in MiB, None where NVML does not know it.
    """

    index: str
    uuid: str
    name: str
    used: int | None
    total: int | None
    processes: tuple[str, ...] = ()
    parts: "tuple[Gpu, ...]" = ()

    @property
    def title(self) -> str:
        """What messages call it: its number and model, or the part's UUID."""
        return f"GPU {self.index} ({self.name})" if self.index else self.uuid

    @property
    def memory_in_use(self) -> float:
        """The share of its memory that is taken, by whomever; 0 where that is not known."""
        return self.used / self.total if self.used is not None and self.total else 0.0

    @property
    def remark(self) -> str | None:
        """A sentence where others hold more memory than goes unmentioned, or may do."""
        if self.used is None:
            return f"{self.title} does not show its memory: whether others hold it is not checked"
        return self.holders if self.memory_in_use > NOTED else None

    @property
    def holders(self) -> str:
        """Who holds its memory, and what to do; of a GPU whose memory is known."""
        who = " and ".join(self.processes) or "processes that this user cannot see"
        return f"{self.title}: {self.used:,} of {self.total:,} MiB are held by {who}; {_OTHERS}"


def visible_gpus() -> list[Gpu]:
    """Return the GPUs that CUDA would show this process.

    Of a GPU that is divided (MIG) CUDA shows a part, by the part's name or the first one.

    Returns:
        GPUs in CUDA's order; none on a machine without.

    Raises:
        ScoringError: When NVML cannot reach one, or does not return. Or CUDA_VISIBLE_DEVICES names
            one that is not there, or one twice: CUDA would hide that and all after it.
    """
    if torch.version.hip is not None:
        return _amd_gpus()
    gpus = read_gpus()
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not gpus or chosen is None:
        return [_shown(gpu) for gpu in gpus]
    found: list[Gpu] = []
    for name in map(str.strip, chosen.split(",")):
        if name in _NONE:
            break
        gpu = _by_name(name, gpus)
        if gpu is None or gpu in found:
            wrong = f"{name!r} for a second time" if gpu else f"{name!r}, which is no GPU here"
            uuids = [one.uuid for each in gpus for one in (each, *each.parts)]
            there = ", ".join([*(each.index for each in gpus), *uuids])
            raise ScoringError(
                f"CUDA_VISIBLE_DEVICES={chosen} names {wrong} (there are {there}), so that CUDA "
                "would show fewer GPUs or none; correct it, or leave it unset"
            )
        found.append(gpu)
    return found


def _by_name(name: str, gpus: list[Gpu]) -> Gpu | None:
    """Find one by number or UUID, which may be cut short; parts that NVML does not list are believed."""
    if name.startswith("MIG-"):
        parts = [part for gpu in gpus for part in gpu.parts]
        if not parts:
            return Gpu("", name, "a part of a GPU", None, None)
        return next((part for part in parts if part.uuid.startswith(name)), None)
    for gpu in gpus:
        if name == gpu.index or (name.startswith("GPU-") and gpu.uuid.startswith(name)):
            return _shown(gpu)
    return None


def _shown(gpu: Gpu) -> Gpu:
    return gpu.parts[0] if gpu.parts else gpu


def _amd_gpus() -> list[Gpu]:
    """Return those that a ROCm build of PyTorch shows, which NVML knows nothing of."""
    found = []
    try:
        for index in range(torch.cuda.device_count()):
            free, total = torch.cuda.mem_get_info(index)
            used, name = (total - free) >> 20, torch.cuda.get_device_name(index)
            found.append(Gpu(str(index), f"cuda:{index}", name, used, total >> 20))
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ScoringError(f"a GPU of this node does not answer ({reason}); {_DRAIN}") from error
    return found


def read_gpus() -> list[Gpu]:
    """Return all GPUs of this machine as NVML has them; raise ScoringError for one that is dead.

    Returns:
        GPUs in NVML's order, those that this process may not use included.
    """

    def read() -> list[Gpu]:
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return [_gpu(handle, str(index)) for index, handle in enumerate(handles)]

    return _ask_nvml(read) or []


def driver_version() -> str | None:
    """Return the NVIDIA driver's version.

    Returns:
        A version such as `580.65.06`; None on a machine without the driver.
    """
    return _ask_nvml(lambda: str(pynvml.nvmlSystemGetDriverVersion()))


def _ask_nvml(read: Callable[[], T]) -> T | None:
    """Return what is read from NVML; None on a machine without a GPU."""
    found: list[Any] = []

    def ask() -> None:
        try:
            pynvml.nvmlInit()
            found.append(read())
        except pynvml.NVMLError as error:
            found.append(error)

    thread = threading.Thread(target=ask, daemon=True)  # which nobody can end where it hangs
    thread.start()
    thread.join(ANSWER_SECONDS)
    if not found:
        raise ScoringError(
            f"NVML does not answer within {ANSWER_SECONDS:.0f} s: a GPU of this node is dead or its driver "
            f"hangs; {_DRAIN}"
        )
    answer: T | None = None if isinstance(found[0], _NO_GPU) else found[0]
    if isinstance(answer, pynvml.NVMLError):
        raise ScoringError(f"NVML fails on this node ({answer}): a GPU is dead; {_DRAIN}")
    return answer


def _gpu(handle: Any, index: str) -> Gpu:
    used = total = None
    with contextlib.suppress(*_UNKNOWN_MEMORY):
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        used, total = memory.used >> 20, memory.total >> 20
    return Gpu(
        index,
        pynvml.nvmlDeviceGetUUID(handle),
        pynvml.nvmlDeviceGetName(handle),
        used,
        total,
        _processes(handle),
        _parts(handle, index),
    )


def _parts(handle: Any, index: str) -> tuple[Gpu, ...]:
    """Return those that a GPU is divided into; none where it is whole, or a part itself."""
    try:
        is_divided = pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument):
        return ()
    found = []
    for place in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle) if is_divided else 0):
        with contextlib.suppress(pynvml.NVMLError_NotFound):  # a place that is not taken
            part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
            found.append(_gpu(part, index))
    return tuple(found)


def _processes(handle: Any) -> tuple[str, ...]:
    """Describe all processes but this one that NVML shows."""
    found = []
    with contextlib.suppress(pynvml.NVMLError):
        for one in pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
            name = "of another user"
            with contextlib.suppress(pynvml.NVMLError):
                name = str(pynvml.nvmlSystemGetProcessName(one.pid))
            size = f", {one.usedGpuMemory >> 20:,} MiB" if one.usedGpuMemory is not None else ""
            if one.pid != os.getpid():
                found.append(f"process {one.pid} ({name}{size})")
    return tuple(found)


def check_free(count: int = 1, patience: float = 30.0) -> str | None:
    """Check that this process can use its GPUs, before it does.

    A job that has just ended may hold memory for some seconds more, so such a GPU is checked again.

    Args:
        count: GPUs to check, the first that are visible.
        patience: Seconds in which a GPU that others use is checked again.

    Returns:
        A remark on memory that others hold; None if there is none.

    Raises:
        ScoringError: When one is dead, or others hold more than HELD of its memory.
    """
    end = time.monotonic() + patience
    while True:
        gpus = visible_gpus()[:count]
        held = [gpu for gpu in gpus if gpu.memory_in_use > HELD]
        if not held:
            return "; ".join(filter(None, (gpu.remark for gpu in gpus))) or None
        if time.monotonic() > end:
            raise ScoringError(held[0].holders)
        time.sleep(2.0)
