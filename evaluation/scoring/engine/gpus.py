"""The GPU that a process will use: does it answer, and is it free?

Asked of nvidia-smi, which also names the processes of others. A dead GPU makes it hang, so that it
is given up after a while.
"""

import csv
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass

from evaluation.errors import ScoringError

_SECONDS = 30.0
HELD = 0.5
"""Part of a GPU's memory that others may use before a job on it is refused."""
NOTED = 0.05
"""Part that a driver and an idle desktop may use unmentioned."""

_NO_GPU = re.compile(r"No devices were found|communicate with the NVIDIA driver")
"""What nvidia-smi says on a machine without a GPU, such as a login node with the tools."""
_OTHERS = "end it, choose another GPU by CUDA_VISIBLE_DEVICES, or have the node drained"
_DRAIN = "exclude the node (`sbatch --exclude`), have it drained, and run again"


@dataclass(frozen=True)
class Process:
    """A process with memory on a GPU; `used` is in MiB, None where it is not told."""

    pid: int
    name: str
    used: int | None


@dataclass(frozen=True)
class Gpu:
    """A GPU; memory is in MiB, None where nvidia-smi cannot read it."""

    index: str
    uuid: str
    name: str
    used: int | None
    total: int | None
    processes: tuple[Process, ...]

    @property
    def title(self) -> str:
        return f"GPU {self.index} ({self.name})"


class DeadGpu(ScoringError):
    """The GPU, or its driver, does not answer."""


def visible_gpus() -> list[Gpu]:
    """The GPUs that CUDA would show this process, in its order; none on a machine without.

    Raises DeadGpu if there is one that nvidia-smi cannot reach, or if nvidia-smi does not end.
    """
    if shutil.which("nvidia-smi") is None:
        return []
    rows = _ask("gpu", "index,uuid,name,memory.used,memory.total")
    if not rows:
        return []
    held = _ask("compute-apps", "gpu_uuid,pid,process_name,used_memory")
    gpus = [_gpu(row, held) for row in rows if len(row) == 5]
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return gpus
    return [gpu for name in chosen.split(",") for gpu in gpus if _is_named(gpu, name.strip())]


def _ask(what: str, columns: str) -> list[list[str]]:
    command = ["nvidia-smi", f"--query-{what}={columns}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise DeadGpu(
            f"nvidia-smi does not answer within {_SECONDS:.0f} s: a GPU of this node is dead or its "
            f"driver hangs; {_DRAIN}"
        ) from None
    said = " ".join((done.stdout + done.stderr).split())
    if done.returncode:
        if _NO_GPU.search(said):
            return []
        raise DeadGpu(f"nvidia-smi fails on this node ({said[:200]}): a GPU is dead; {_DRAIN}")
    return list(csv.reader(done.stdout.splitlines(), skipinitialspace=True))


def _gpu(row: list[str], held: list[list[str]]) -> Gpu:
    index, uuid, name, used, total = row
    processes = tuple(
        Process(int(pid), path, _number(memory))
        for owner, pid, path, memory in (line for line in held if len(line) == 4)
        if owner == uuid and pid.isdigit() and int(pid) != os.getpid()
    )
    return Gpu(index, uuid, name, _number(used), _number(total), processes)


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def part_of_gpu() -> str | None:
    """A sentence where this process has a part of a GPU (MIG), of which nvidia-smi's query tells nothing."""
    name = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    if not name.startswith("MIG-"):
        return None
    return f"{name} is a part of a GPU (MIG): whether others hold its memory is not checked"


def _is_named(gpu: Gpu, name: str) -> bool:
    return name == gpu.index or (name.startswith("GPU-") and gpu.uuid.startswith(name))


def in_use(gpu: Gpu) -> float:
    """The part of a GPU's memory that is taken, 0 to 1; raises DeadGpu if that cannot be read."""
    if gpu.used is None or not gpu.total:
        raise DeadGpu(f"{gpu.title} does not tell its memory: it is dead or lost; {_DRAIN}")
    return gpu.used / gpu.total


def holders(gpu: Gpu) -> str:
    """A sentence on who holds a GPU's memory."""
    known = [
        f"process {each.pid} ({each.name}{'' if each.used is None else f', {each.used:,} MiB'})"
        for each in gpu.processes
    ]
    who = " and ".join(known) if known else "processes that this user cannot see"
    return f"{gpu.title}: {gpu.used:,} of {gpu.total:,} MiB are held by {who}; {_OTHERS}"


def check_free(patience: float = 30.0) -> str | None:
    """Makes sure that the first visible GPU can be used by this process, before it does.

    A job that has just ended may hold memory for some seconds more, so a held GPU is asked again for
    `patience` s. Returns a sentence on a smaller part that others hold, None if there is none.

    Raises:
        ScoringError: if it is dead, or others hold more than HELD of its memory.
    """
    end = time.monotonic() + patience
    while True:
        gpus = visible_gpus()
        if not gpus:
            return part_of_gpu()
        part = in_use(gpus[0])
        if part <= NOTED:
            return None
        if part <= HELD:
            return holders(gpus[0])
        if time.monotonic() > end:
            raise ScoringError(holders(gpus[0]))
        time.sleep(2.0)
