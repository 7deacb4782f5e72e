"""Check that the GPUs that a process will use respond and are free.

NVIDIA GPUs are queried by NVIDIA's monitoring library (NVML), with a time limit, since a dead GPU makes
it hang; AMD's are queried by PyTorch.
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
from evaluation.scoring.visible_gpus import VISIBLE, named_in
from evaluation.wording import reason_of

T = TypeVar("T")

ANSWER_SECONDS = 30.0
"""Time limit of a query to NVML."""
HELD = 0.5
"""Share of a GPU's memory above which use by others stops a job on it."""
NOTED = 0.05
"""Share above which a warning is logged; a driver and an idle desktop use less."""

_NO_GPU = (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded)
_UNKNOWN_MEMORY = (pynvml.NVMLError_NotSupported, pynvml.NVMLError_NoPermission)
_OTHERS = "end it, choose another GPU by CUDA_VISIBLE_DEVICES, or have the node drained"
_DRAIN = "exclude the node (`sbatch --exclude`), have it drained, and run again"


@dataclass(frozen=True)
class Gpu:
    """A GPU, or a part of one (MIG), and the other processes on it.

    Memory is in MiB, None if NVML does not report it.
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
        """Its name in messages: its number and model, or the part's UUID."""
        return f"GPU {self.index} ({self.name})" if self.index else self.uuid

    @property
    def memory_in_use(self) -> float:
        """Share of its memory that is in use, by any process; 0 if that is unknown."""
        return self.used / self.total if self.used is not None and self.total else 0.0

    @property
    def remark(self) -> str | None:
        """A sentence if others use more memory than NOTED, or if that is unknown; otherwise None."""
        if self.used is None:
            return f"{self.title} does not show its memory: whether others hold it is not checked"
        return self.holders if self.memory_in_use > NOTED else None

    @property
    def holders(self) -> str:
        """A sentence that names the processes in its memory, which must be known, and the remedy."""
        who = " and ".join(self.processes) or "processes that this user cannot see"
        return f"{self.title}: {self.used:,} of {self.total:,} MiB are held by {who}; {_OTHERS}"


def visible_gpus() -> list[Gpu]:
    """Return the GPUs that CUDA would show this process.

    If a GPU is divided (MIG), CUDA shows one part: the one that is named, or else the first.

    Raises:
        ScoringError: When NVML cannot reach a GPU, or does not return. Or CUDA_VISIBLE_DEVICES names
            a GPU that does not exist, or one twice: CUDA would hide that and all after it.
    """
    if torch.version.hip is not None:
        return _amd_gpus()
    gpus = read_gpus()
    chosen = os.environ.get(VISIBLE)
    if not gpus or chosen is None:
        return [_shown(gpu) for gpu in gpus]
    visible: list[Gpu] = []
    for name in named_in(chosen):
        gpu = _by_name(name, gpus)
        if gpu is None or gpu in visible:
            wrong = f"{name!r} for a second time" if gpu else f"{name!r}, which is no GPU here"
            uuids = [one.uuid for each in gpus for one in (each, *each.parts)]
            there = ", ".join([*(each.index for each in gpus), *uuids])
            raise ScoringError(
                f"{VISIBLE}={chosen} names {wrong} (there are {there}), so that CUDA "
                "would show fewer GPUs or none; correct it, or leave it unset"
            )
        visible.append(gpu)
    return visible


def _by_name(name: str, gpus: list[Gpu]) -> Gpu | None:
    """Find a GPU by number or by a prefix of its UUID; parts are accepted if NVML lists none."""
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
    """Return the GPUs that a ROCm build of PyTorch shows; NVML does not know them."""
    gpus = []
    try:
        for index in range(torch.cuda.device_count()):
            free, total = torch.cuda.mem_get_info(index)
            used, name = (total - free) >> 20, torch.cuda.get_device_name(index)
            gpus.append(Gpu(str(index), f"cuda:{index}", name, used, total >> 20))
    except RuntimeError as error:
        raise ScoringError(
            f"a GPU of this node does not respond ({reason_of(error)}); {_DRAIN}"
        ) from error
    return gpus


def read_gpus() -> list[Gpu]:
    """Return all GPUs of this machine in NVML's order; raise ScoringError if one is dead."""

    def read() -> list[Gpu]:
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return [_gpu(handle, str(index)) for index, handle in enumerate(handles)]

    return _ask_nvml(read) or []


def driver_version() -> str | None:
    """Return the NVIDIA driver's version, such as `580.65.06`; None on a machine without the driver."""
    return _ask_nvml(lambda: str(pynvml.nvmlSystemGetDriverVersion()))


def _ask_nvml(read: Callable[[], T]) -> T | None:
    """Return the result of a query to NVML; None on a machine without a GPU."""
    answers: list[Any] = []

    def ask() -> None:
        try:
            pynvml.nvmlInit()
            answers.append(read())
        except pynvml.NVMLError as error:
            answers.append(error)

    thread = threading.Thread(target=ask, daemon=True)  # a thread that hangs cannot be ended
    thread.start()
    thread.join(ANSWER_SECONDS)
    if not answers:
        raise ScoringError(
            f"NVML does not respond within {ANSWER_SECONDS:.0f} s: a GPU of this node is dead or its driver "
            f"hangs; {_DRAIN}"
        )
    answer: T | None = None if isinstance(answers[0], _NO_GPU) else answers[0]
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
    """Return the parts (MIG) of a GPU; none if it is not divided, or is a part itself."""
    try:
        is_divided = pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument):
        return ()
    parts = []
    for place in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle) if is_divided else 0):
        with contextlib.suppress(pynvml.NVMLError_NotFound):  # a free place
            part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
            parts.append(_gpu(part, index))
    return tuple(parts)


def _processes(handle: Any) -> tuple[str, ...]:
    """Describe all processes that NVML shows, except this one."""
    processes = []
    with contextlib.suppress(pynvml.NVMLError):
        for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
            name = "of another user"
            with contextlib.suppress(pynvml.NVMLError):
                name = str(pynvml.nvmlSystemGetProcessName(process.pid))
            size = (
                f", {process.usedGpuMemory >> 20:,} MiB"
                if process.usedGpuMemory is not None
                else ""
            )
            if process.pid != os.getpid():
                processes.append(f"process {process.pid} ({name}{size})")
    return tuple(processes)


def check_free(count: int = 1, patience: float = 30.0) -> str | None:
    """Check that this process can use its GPUs, before it does; return a remark on memory others use.

    A job that has just ended may hold memory for a few more seconds, so such a GPU is checked
    again.

    Args:
        count: Number of visible GPUs to check, from the first on.
        patience: Seconds for which a GPU that others use is checked again.

    Raises:
        ScoringError: When a GPU is dead, or others use more than HELD of its memory.
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
