"""The share of the time in which the device had work, as the profiler saw it.

The profiler itself slows the host down, so that a share is rather too low than too high.
"""

import time
from collections.abc import Callable, Iterable

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile


def busy_share(device: torch.device, task: Callable[[], object]) -> float:
    """Of the task's wall time, 0 to 1; on CPU the share spent inside torch's operations."""
    on_gpu = device.type == "cuda"
    kind = DeviceType.CUDA if on_gpu else DeviceType.CPU
    activity = ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU
    with profile(activities=[activity], acc_events=True) as seen:
        start = time.perf_counter()
        task()
        if on_gpu:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    spans = (
        (event.time_range.start, event.time_range.end)
        for event in seen.events() or ()
        # An annotation spans its kernels and the gaps between them.
        if event.device_type == kind and not event.is_user_annotation
    )
    return min(1.0, covered(spans) / (1e6 * seconds))


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the union of (start, end)."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
