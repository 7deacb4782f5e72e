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
from dataclasses import dataclass, replace

from evaluation.errors import ScoringError
from evaluation.scoring.engine.mig import Part, read_memory, read_parts

_SECONDS = 30.0
HELD = 0.5
"""Part of a GPU's memory that others may use before a job on it is refused."""
NOTED = 0.05
"""Part that a driver and an idle desktop may use unmentioned."""

_NO_GPU = re.compile(r"No devices were found|communicate with the NVIDIA driver")
"""What nvidia-smi says on a machine without a GPU, such as a login node with the tools."""
_OTHERS = "end it, choose another GPU by CUDA_VISIBLE_DEVICES, or have the node drained"
_NONE = ("", "-1", "NoDevFiles")
"""Values of CUDA_VISIBLE_DEVICES that mean no GPU, or none from there on; Slurm's is the last."""
_DRAIN = "exclude the node (`sbatch --exclude`), have it drained, and run again"


@dataclass(frozen=True)
class Process:
    """A process with memory on a GPU; `used` is in MiB, None where it is not told."""

    pid: int
    name: str
    used: int | None


@dataclass(frozen=True)
class Gpu:
    """A GPU, or a part of one (MIG); memory is in MiB, None where nvidia-smi cannot read it."""

    index: str
    uuid: str
    name: str
    used: int | None
    total: int | None
    processes: tuple[Process, ...]
    is_part: bool = False

    @property
    def title(self) -> str:
        return f"GPU {self.index} ({self.name})" if self.index else self.uuid


class DeadGpu(ScoringError):
    """The GPU, or its driver, does not answer."""


class UnknownGpu(ScoringError):
    """CUDA_VISIBLE_DEVICES names a GPU that this machine does not have."""


def visible_gpus() -> list[Gpu]:
    """The GPUs that CUDA would show this process, in its order; none on a machine without.

    Of a GPU that is divided (MIG) CUDA shows a part, by the part's name or the first one.

    Raises:
        DeadGpu: if there is one that nvidia-smi cannot reach, or if nvidia-smi does not end.
        UnknownGpu: if CUDA_VISIBLE_DEVICES names one that is not there, or one twice: CUDA would
            hide that and all after it, and the job go on without a GPU, or on fewer.
    """
    if shutil.which("nvidia-smi") is None:
        return []
    rows = _ask("gpu", "index,uuid,name,memory.used,memory.total")
    if not rows:
        return []
    held = _ask("compute-apps", "gpu_uuid,pid,process_name,used_memory")
    gpus = [_gpu(row, held) for row in rows if len(row) == 5]
    parts = read_parts(_run("-L") or "")
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        shown = _named(chosen, gpus, parts)
    else:
        shown = [_first_part(gpu, parts) for gpu in gpus]
    return _with_memory(shown, {part.uuid: part for part in parts})


def driver_version() -> str | None:
    """The NVIDIA driver's version, such as `580.65.06`; None where it is not told."""
    if shutil.which("nvidia-smi") is None:
        return None
    rows = _ask("gpu", "driver_version")
    return rows[0][0] if rows and len(rows[0]) == 1 else None


def _ask(what: str, columns: str) -> list[list[str]]:
    said = _run(f"--query-{what}={columns}", "--format=csv,noheader,nounits")
    return [] if said is None else list(csv.reader(said.splitlines(), skipinitialspace=True))


def _run(*arguments: str) -> str | None:
    """What nvidia-smi prints; None on a machine without a GPU. Raises DeadGpu."""
    try:
        done = subprocess.run(
            ["nvidia-smi", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise DeadGpu(
            f"nvidia-smi does not answer within {_SECONDS:.0f} s: a GPU of this node is dead or its "
            f"driver hangs; {_DRAIN}"
        ) from None
    said = " ".join((done.stdout + done.stderr).split())
    if done.returncode:
        if _NO_GPU.search(said):
            return None
        raise DeadGpu(f"nvidia-smi fails on this node ({said[:200]}): a GPU is dead; {_DRAIN}")
    return done.stdout


def _named(chosen: str, gpus: list[Gpu], parts: list[Part]) -> list[Gpu]:
    """The GPUs of CUDA_VISIBLE_DEVICES, up to a name that means none."""
    found: list[Gpu] = []
    for name in map(str.strip, chosen.split(",")):
        if name in _NONE:
            break
        gpu = _by_name(name, gpus, parts)
        if gpu is None or gpu in found:
            uuids = [*(each.uuid for each in gpus), *(part.uuid for part in parts)]
            known = ", ".join([*(each.index for each in gpus), *uuids])
            wrong = (
                f"{name!r}, which is no GPU here" if gpu is None else f"{name!r} for a second time"
            )
            raise UnknownGpu(
                f"CUDA_VISIBLE_DEVICES={chosen} names {wrong} (there are {known}), so that CUDA "
                "would show fewer GPUs or none; correct it, or leave it unset"
            )
        found.append(gpu)
    return found


def _by_name(name: str, gpus: list[Gpu], parts: list[Part]) -> Gpu | None:
    """By its number or a UUID, which may be cut short; parts that are not listed are believed."""
    if name.startswith("MIG-"):
        if not parts:
            return Gpu("", name, "a part of a GPU", None, None, (), is_part=True)
        by_uuid = {gpu.uuid: gpu for gpu in gpus}
        return next(
            (
                _part(by_uuid[part.gpu], part)
                for part in parts
                if part.uuid.startswith(name) and part.gpu in by_uuid
            ),
            None,
        )
    for gpu in gpus:
        if name == gpu.index or (name.startswith("GPU-") and gpu.uuid.startswith(name)):
            return _first_part(gpu, parts)
    return None


def _first_part(gpu: Gpu, parts: list[Part]) -> Gpu:
    return next((_part(gpu, part) for part in parts if part.gpu == gpu.uuid), gpu)


def _part(gpu: Gpu, part: Part) -> Gpu:
    name = f"{gpu.name} MIG {part.profile}"
    return Gpu(gpu.index, part.uuid, name, None, part.nominal, (), is_part=True)


def _with_memory(gpus: list[Gpu], parts: dict[str, Part]) -> list[Gpu]:
    """With the memory of those that are parts, where it is told."""
    if not any(gpu.uuid in parts for gpu in gpus):
        return gpus
    memory = read_memory(_run("-q", "-x") or "")
    known = {uuid: memory.get((part.gpu, part.number)) for uuid, part in parts.items()}
    return [
        replace(gpu, used=found[0], total=found[1]) if (found := known.get(gpu.uuid)) else gpu
        for gpu in gpus
    ]


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


def untold(gpu: Gpu) -> str | None:
    """A sentence where it is a part of a GPU whose memory nvidia-smi does not tell."""
    if not gpu.is_part or gpu.used is not None:
        return None
    return f"{gpu.title} is a part of a GPU (MIG): whether others hold its memory is not checked"


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
            return None
        if (remark := untold(gpus[0])) is not None:
            return remark
        part = in_use(gpus[0])
        if part <= NOTED:
            return None
        if part <= HELD:
            return holders(gpus[0])
        if time.monotonic() > end:
            raise ScoringError(holders(gpus[0]))
        time.sleep(2.0)
