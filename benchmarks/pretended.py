"""Simulate a GPU for PyTorch's compilers, and stop a compilation once it has the result to inspect."""

import contextlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
import torch._inductor.config as inductor
import triton
from torch._dynamo.device_interface import CudaInterface
from torch._inductor.graph import GraphLowering
from torch._inductor.ir import get_fill_order
from torch._inductor.runtime import triton_helpers
from triton.backends.compiler import GPUTarget

SHARED = {80: 166912, 90: 232448}
"""Bytes of shared memory that a block may have, by compute capability."""
CORES = {80: 108, 90: 132}  # streaming multiprocessors


class _Stop(BaseException):
    """Ends a compilation; `found` is the result to inspect."""

    def __init__(self, found: Any) -> None:
        self.found = found


def stop(*found: Any) -> None:
    raise _Stop(found)


def stopped(run: Callable[[], Any]) -> Any:
    try:
        run()
    except BaseException as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, _Stop):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        return cause.found
    raise RuntimeError("nothing was compiled")


def _in_order_of(out: torch.Tensor, strides: Any) -> torch.Tensor:
    """Return a tensor like `out` whose dimensions have the memory order of `strides`."""
    found, size = [0] * out.dim(), 1
    for place in get_fill_order(strides):
        found[place], size = size, size * out.shape[place]
    return torch.empty_strided(out.shape, found, dtype=out.dtype, device=out.device)


class _Driver:
    """Stands in for Triton's connection to a GPU."""

    def __init__(self, properties: Any) -> None:
        self._properties = properties
        self.utils = types.SimpleNamespace(get_device_properties=lambda _: vars(properties))

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._properties.major * 10 + self._properties.minor, 32)

    def get_current_device(self) -> int:
        return 0

    def get_device_interface(self) -> Any:
        return torch.cuda


def _cuda_calls(properties: types.SimpleNamespace) -> dict[str, Any]:
    """Return replacements for the functions of `torch.cuda` that are called while code is generated."""
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "synchronize": lambda *_: None,
        "get_device_properties": lambda *_: properties,
        "get_device_capability": lambda *_: (properties.major, properties.minor),
        "get_rng_state": lambda *_: torch.empty(1),
        "set_rng_state": lambda *_: None,
        "_exchange_device": lambda *_: 0,
        "_maybe_exchange_device": lambda *_: 0,
    }


@contextlib.contextmanager
def pretended(capability: int) -> Iterator[None]:
    """Make Inductor and Triton see a GPU of this compute capability."""
    properties = types.SimpleNamespace(
        name="none", major=capability // 10, minor=capability % 10, warp_size=32,
        multi_processor_count=CORES[capability], regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048, max_threads_per_block=1024,
        shared_memory_per_block=49152, shared_memory_per_block_optin=SHARED[capability],
        max_shared_mem=SHARED[capability], total_memory=80 << 30, L2_cache_size=40 << 20,
        is_integrated=False, gcnArchName="",
    )  # fmt: skip
    interface = {
        name: staticmethod(value)
        for name, value in {
            "get_compute_capability": lambda *_: capability,
            "get_device_properties": lambda *_: properties,
            "is_triton_capable": lambda *_: True,
            "raise_if_triton_unavailable": lambda *_: None,
            "current_device": lambda *_: 0,
        }.items()
    }
    flex = sys.modules["torch._higher_order_ops.flex_attention"]
    triton.runtime.driver.set_active(_Driver(properties))
    with (
        mock.patch.multiple(torch.cuda, **_cuda_calls(properties)),
        mock.patch.multiple(CudaInterface, **interface),
        mock.patch.multiple(
            CudaInterface.Worker,
            get_device_properties=staticmethod(lambda *_: properties),
            current_device=staticmethod(lambda: 0),
        ),
        mock.patch.object(torch._inductor.scheduler, "has_triton", return_value=True),
        mock.patch.object(triton_helpers, "set_driver_to_gpu", return_value=None),
        mock.patch.object(flex, "_permute_strides", _in_order_of),
        mock.patch.object(GraphLowering, "save_output_code", staticmethod(stop)),
        inductor.patch(
            force_disable_caches=True, compile_threads=1, use_static_triton_launcher=False
        ),
    ):
        yield
