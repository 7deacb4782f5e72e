"""Choose the device that a job computes on, and check its GPU, driver and compiler.

A build of PyTorch includes CUDA's libraries, but not the driver, nor the C compiler and Python headers
with which Triton compiles its launchers.
"""

import logging
import os
import shutil
import sysconfig
import warnings
from pathlib import Path

import torch

from evaluation.allowance import THREADS, usable_cores
from evaluation.errors import ConfigError, ScoringError
from evaluation.scoring.engine.gpus import Gpu, check_free, driver_version, visible_gpus

log = logging.getLogger(__name__)

AMPERE = (8, 0)
"""Compute capability of NVIDIA's first GPUs with bfloat16."""

MINIMUM_DRIVER = {11: 450, 12: 525, 13: 580}
"""First part of the oldest driver's version for each major version of CUDA.

NVIDIA, CUDA Compatibility, Minor Version Compatibility, table 1:
https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
"""

OLDEST_BUILD = 12
"""Major version of CUDA of the oldest build of PyTorch 2.13 (cu126)."""

ANOTHER_BUILD = "docs/gpu.md explains how"

AMD_DRIVER = Path("/dev/kfd")
"""Exists if AMD's driver has a GPU for computing."""

GIVEN = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Environment variables that assign GPUs to a job."""


def choose_device(requested: str, gpus: int = 1) -> str:
    """Resolve `auto` to `cuda` if there is a GPU, and check that GPUs respond and are free.

    A job that has a GPU but cannot use it would take days on the CPU, so it stops instead.

    Raises:
        ConfigError: When a GPU is requested and there is none.
        ScoringError: When a GPU is dead, occupied by others, or not usable by this PyTorch,
            or CUDA_VISIBLE_DEVICES names one that does not exist.
    """
    if requested == "cpu":
        return "cpu"
    # Number GPUs in CUDA as NVML does; by default CUDA's first one is the fastest.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    # Once this process has begun to use a GPU, occupied memory may be its own.
    is_ours = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    remark = None if is_ours else check_free(gpus)
    if remark is not None:
        log.warning("%s", remark)
    if torch.cuda.is_available():
        # Vendors' containers allow TF32, whose relative error is 3e-4.
        torch.set_float32_matmul_precision("highest")
        warnings.filterwarnings("ignore", "TensorFloat32 tensor cores")  # the advice to allow it
        return "cuda"
    _check_not_lost()
    if requested == "cuda":
        raise ConfigError("scoring.device: cuda, but PyTorch sees no GPU here; use auto or cpu")
    return "cpu"


def limit_threads() -> None:
    """Let PyTorch use no more threads than cores that this process may keep busy, unless the user has set them.

    It sees the cores that a process may run on, but not the share of their time that its group has.
    """
    if THREADS not in os.environ and (cores := usable_cores()) < torch.get_num_threads():
        torch.set_num_threads(cores)


def check_dtype(device: str, dtype: str) -> None:
    """Raise ConfigError if a GPU only emulates a dtype."""
    if device != "cuda" or dtype != "bfloat16" or torch.version.hip is not None:
        return
    if torch.cuda.get_device_capability() < AMPERE:
        raise ConfigError(
            f"{torch.cuda.get_device_name()} does not compute in bfloat16; set scoring.dtype: "
            "float32, for the bridge's stage too"
        )


def _check_not_lost() -> None:
    """Raise ScoringError if the job has a GPU that PyTorch does not see; warn if only the machine has one."""
    gpus = visible_gpus()
    sentence = why_unusable(gpus[0]) if gpus else amd_fault()
    if sentence is None:
        return
    if any(map(os.environ.get, GIVEN)):
        raise ScoringError(sentence)
    log.warning("%s; the CPU is used", sentence)


def why_unusable(gpu: Gpu) -> str:
    """Return why PyTorch cannot use a GPU that NVML sees, and the remedy."""
    reason = driver_fault(driver_version()) or (
        "the GPU is dead, or this build does not fit the driver; install one that does, or exclude "
        "the node"
    )
    return (
        f"{gpu.title} is there, but PyTorch {torch.__version__} cannot use it: {reason}, or set "
        "scoring.device: cpu"
    )


def amd_fault() -> str | None:
    """Return why this PyTorch cannot use an AMD GPU of this machine; None if it can, or there is none."""
    if torch.version.hip is not None or not AMD_DRIVER.exists():
        return None
    return (
        f"an AMD GPU is there, but PyTorch {torch.__version__} is built without ROCm; install a build "
        f"with it ({ANOTHER_BUILD}), or set scoring.device: cpu"
    )


def driver_fault(driver: str | None) -> str | None:
    """Return why this PyTorch cannot use a GPU under a driver, and remedies; None: no known reason.

    Args:
        driver: The driver's version, such as `535.129.03`; None if it is not known.
    """
    if torch.version.cuda is None:
        return f"it is built without CUDA; install another build ({ANOTHER_BUILD})"
    built, supported = _leading(torch.version.cuda), _leading(driver)
    least = MINIMUM_DRIVER.get(built)
    if least is None or not supported or supported >= least:
        return None
    has_build = built > OLDEST_BUILD and supported >= MINIMUM_DRIVER[OLDEST_BUILD]
    remedy = f"install a build for CUDA {OLDEST_BUILD}" if has_build else "exclude the node"
    return (
        f"it is built for CUDA {torch.version.cuda}, which needs NVIDIA driver {least} or newer, but "
        f"the driver is {driver}; {remedy} ({ANOTHER_BUILD}), have the driver updated"
    )


def _leading(version: str | None) -> int:
    """Return the first number of a version; 0 if there is none."""
    first = (version or "").partition(".")[0]
    return int(first) if first.isdigit() else 0


def compiler_fault() -> str | None:
    """Return that Triton lacks a C compiler or Python's headers, and remedies; None if it has both."""
    if torch.version.cuda is None and torch.version.hip is None:
        return None
    given = os.environ.get("CC")
    names = [given] if given else ["gcc", "clang"]
    if not any(shutil.which(name) for name in names):
        which = (
            f"CC={given} is not a program" if given else "there is neither gcc nor clang on PATH"
        )
        return (
            f"{which}, but Triton needs a C compiler on every node with a GPU; load the site's module "
            "of one (on the node, before the job's command), or set CC to it"
        )
    folder = _headers()
    others = os.pathsep.join(os.environ.get(name, "") for name in ("CPATH", "C_INCLUDE_PATH"))
    folders = [folder, *(Path(each) for each in others.split(os.pathsep) if each)]
    if not any((each / "Python.h").is_file() for each in folders):
        return (
            f"{folder / 'Python.h'} is missing, but Triton needs the headers of Python on every "
            "node with a GPU; install them (Debian's python3-dev), or make the environment with a "
            "Python that has them"
        )
    return None


def _headers() -> Path:
    scheme = sysconfig.get_default_scheme()
    scheme = "posix_prefix" if scheme == "posix_local" else scheme
    return Path(sysconfig.get_paths(scheme=scheme)["include"])
