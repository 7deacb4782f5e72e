"""Choose the device that a job computes on."""

import logging
import os
import warnings

import torch

from evaluation.errors import ConfigError, ScoringError, reason_of
from evaluation.processes import THREADS, usable_cores
from evaluation.scoring.gpus import are_given, are_here, holders, visible_names

log = logging.getLogger(__name__)


def choose_device(requested: str) -> str:
    """Resolve `auto` to `cuda` if there is a GPU; log who else holds the GPU's memory.

    Raises:
        ScoringError: When a GPU is requested or was given, and PyTorch cannot use it.
    """
    if requested == "cpu":
        return "cpu"
    # Number GPUs as nvidia-smi does; by default CUDA's first one is the fastest.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    if torch.cuda.is_available():
        # cuDNN's kernels are preferred on an H100, and take up to a second for each new shape.
        torch.backends.cuda.enable_cudnn_sdp(False)
        # Vendors' containers allow TF32, whose relative error is 3e-4.
        torch.set_float32_matmul_precision("highest")
        warnings.filterwarnings("ignore", "TensorFloat32 tensor cores")  # the advice to allow it
        is_ours = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        if not is_ours and (others := holders(visible_names()[:1])):
            log.warning("the GPU's memory is also held by %s", others)
        return "cuda"
    if requested == "cuda" or (are_here() and are_given()):
        raise ScoringError(why_unusable())
    if are_here():
        log.warning("%s; the CPU is used", why_unusable())
    return "cpu"


def why_unusable() -> str:
    """Return PyTorch's reason why it cannot use a GPU, and remedies."""
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        reason = "it sees none"
    except (RuntimeError, AssertionError) as error:
        reason = reason_of(error)
    return (
        f"PyTorch {torch.__version__} cannot use a GPU here: {reason.rstrip('.')}; install a build that fits "
        "the driver (docs/gpu.md), exclude the node, or set scoring.device: cpu"
    )


def limit_threads() -> None:
    """Let PyTorch use no more threads than this process may keep busy, unless the user has set them.

    It sees the cores that a process may run on, but not the share of their time that its group has.
    """
    if THREADS not in os.environ and (cores := usable_cores()) < torch.get_num_threads():
        torch.set_num_threads(cores)


def check_dtype(device: str, dtype: str) -> None:
    """Raise ConfigError if a GPU only emulates a dtype."""
    if (device, dtype) != ("cuda", "bfloat16"):
        return
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        raise ConfigError(
            f"{torch.cuda.get_device_name()} does not compute in bfloat16; set scoring.dtype: "
            "float32, for the bridge's stage too"
        )
