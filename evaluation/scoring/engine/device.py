"""Which device a job computes on, and whether its GPU is fit for it."""

import logging
import os

import torch

from evaluation.errors import ConfigError, ScoringError
from evaluation.scoring.engine.gpus import Gpu, check_free, driver_version, visible_gpus
from evaluation.scoring.engine.toolchain import driver_fault

log = logging.getLogger(__name__)


AMPERE = (8, 0)
"""Compute capability of NVIDIA's first GPUs with bfloat16."""


def choose_device(asked: str, gpus: int = 1) -> str:
    """Resolve `auto` to `cuda` where there is a GPU; those of a checkpoint must answer and be free.

    A job that was given a GPU and cannot use it would take days on the CPU, so it stops instead.

    Raises:
        ConfigError: where a GPU is asked for and there is none.
        ScoringError: where it is dead, held by others, or not usable by this PyTorch,
            or CUDA_VISIBLE_DEVICES names one that is not there.
    """
    if asked == "cpu":
        return "cpu"
    # GPU 0 of NVML is to be CUDA's, which else counts the fastest one first.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    # Once this process has begun to use it, what is held may be its own.
    is_ours = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    remark = None if is_ours else check_free(gpus)
    if remark is not None:
        log.warning("%s", remark)
    if torch.cuda.is_available():
        # Vendors' containers allow TF32, which errs by 3e-4 in float32.
        torch.set_float32_matmul_precision("highest")
        return "cuda"
    _check_not_lost()
    if asked == "cuda":
        raise ConfigError("scoring.device: cuda, but PyTorch sees no GPU here; use auto or cpu")
    return "cpu"


def check_dtype(device: str, dtype: str) -> None:
    """Raise ConfigError for a type that the GPU only emulates."""
    if device != "cuda" or dtype != "bfloat16" or torch.version.hip is not None:
        return
    if torch.cuda.get_device_capability() < AMPERE:
        raise ConfigError(
            f"{torch.cuda.get_device_name()} does not compute in bfloat16; set scoring.dtype: "
            "float32, for the bridge's stage too"
        )


def _check_not_lost() -> None:
    """Raise ScoringError if there is a GPU that PyTorch should see."""
    gpus = visible_gpus()
    if not gpus:
        return
    sentence = why_unusable(gpus[0])
    if os.environ.get("CUDA_VISIBLE_DEVICES"):
        raise ScoringError(sentence)
    log.warning("%s; the CPU is used", sentence)


def why_unusable(gpu: Gpu) -> str:
    """Return a sentence on why PyTorch cannot use a GPU that NVML sees, and what to do."""
    reason = driver_fault(driver_version()) or (
        "the GPU is dead, or this build does not fit the driver; install one that does, or exclude "
        "the node"
    )
    return (
        f"{gpu.title} is there, but PyTorch {torch.__version__} cannot use it: {reason}, or set "
        "scoring.device: cpu"
    )
