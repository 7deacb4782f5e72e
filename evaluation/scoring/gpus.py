"""The device that a job computes on: a GPU of its own, or the CPU.

Jobs at once on a machine without Slurm see all GPUs, and none may share one: a job locks a file for each
GPU that it takes. The lock ends with its process, however that ends.
"""

import fcntl
import logging
import os
import tempfile
import time
from itertools import takewhile
from pathlib import Path
from typing import IO

from evaluation.errors import ScoringError, reason_of
from evaluation.processes import THREADS, usable_cores

log = logging.getLogger(__name__)

VISIBLE = "CUDA_VISIBLE_DEVICES"

DRIVER = "/dev/nvidiactl"
"""File that exists where the driver of a GPU is loaded, so that no GPU is a simulated one."""

_HELD: list[IO[str]] = []
"""Open files with the locks of this process."""


def visible_names() -> list[str]:
    """Return the names of all GPUs that this process sees, as CUDA_VISIBLE_DEVICES writes them."""
    if (listed := os.environ.get(VISIBLE)) is None:
        import torch

        return list(map(str, range(torch.cuda.device_count())))
    # From such an entry on there is no GPU; Slurm writes the last one.
    named = takewhile(
        lambda name: name not in ("", "-1", "NoDevFiles"), map(str.strip, listed.split(","))
    )
    return list(dict.fromkeys(named))


def take_gpus(most: int) -> None:
    """Leave at most this many GPUs, none of another job, in CUDA_VISIBLE_DEVICES; wait until one is free."""
    names = visible_names()
    while names:
        own = [name for name in names if len(_HELD) < most and _is_locked(name)]
        if own:
            os.environ[VISIBLE] = ",".join(own)
            return
        log.info("all of the GPUs %s are used by other jobs: waiting", ", ".join(names))
        time.sleep(2.0)


def _is_locked(name: str) -> bool:
    """Lock a GPU; return False if another job has it."""
    folder = Path(tempfile.gettempdir()) / f"evaluation-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    # Slurm may number the GPUs of each of its jobs from 0 on; no two of those share one.
    file = open(folder / f"{os.environ.get('SLURM_JOB_ID', '')}-{name}", "a")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    _HELD.append(file)
    return True


def choose_device(requested: str) -> str:
    """Resolve `auto` to `cuda` if there is a GPU, and set how it computes.

    Raises:
        ScoringError: When a GPU is requested or was given, and PyTorch cannot use it.
    """
    import torch

    if requested == "cpu":
        return "cpu"
    # Number GPUs as nvidia-smi does; by default CUDA's first one is the fastest.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    if torch.cuda.is_available():
        # cuDNN's kernels are preferred on an H100, and take up to a second for each new shape.
        torch.backends.cuda.enable_cudnn_sdp(False)
        # Vendors' containers allow TF32, whose relative error is 3e-4.
        torch.set_float32_matmul_precision("highest")
        return "cuda"
    is_given = any(map(os.environ.get, ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS")))
    if VISIBLE in os.environ:
        is_given = bool(visible_names())
    if requested == "cuda" or (os.path.exists(DRIVER) and is_given):
        try:
            torch.cuda.init()  # type: ignore[no-untyped-call]
            reason = "it sees none"
        except (RuntimeError, AssertionError) as error:
            reason = reason_of(error)
        raise ScoringError(
            f"PyTorch {torch.__version__} cannot use a GPU here: {reason.rstrip('.')}; install a build that "
            "fits the driver (docs/gpu.md), exclude the node, or set scoring.device: cpu"
        )
    return "cpu"


def limit_threads() -> None:
    """Let PyTorch use no more threads than this process may keep busy, unless the user has set them."""
    import torch

    # It sees the cores that a process may run on, but not the share of their time that its group has.
    if THREADS not in os.environ and (cores := usable_cores()) < torch.get_num_threads():
        torch.set_num_threads(cores)
