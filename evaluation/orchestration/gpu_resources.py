"""What a scoring job requests where a checkpoint is distributed over several GPUs.

`scoring.gpus_per_checkpoint` is the one place that sets over how many; the profile sets what a job with
one GPU gets, and a job with four gets four times that.
"""

import re
from collections.abc import Mapping
from typing import Any

_PER_GPU = ("cpus_per_task", "mem_mb")


def for_spread_model(
    defaults: Mapping[str, Any], own: Mapping[str, Any], gpus: int
) -> dict[str, Any]:
    """Return the resources of a job whose model is distributed over several GPUs.

    Args:
        defaults: The profile's default resources, of a job with one GPU.
        own: What the profile sets for the rule itself, which stands as it is.
        gpus: GPUs of the job.

    Returns:
        Resources by name that replace the defaults; none for one GPU.
    """
    if gpus == 1:
        return {}
    found: dict[str, Any] = {
        name: n * gpus for name in _PER_GPU if type(n := defaults.get(name)) is int
    }
    gres, gpu = defaults.get("gres"), defaults.get("gpu")
    if isinstance(gres, str) and (match := re.fullmatch(r"(gpu(?::[^:,]+)??)(?::(\d+))?", gres)):
        found["gres"] = f"{match[1]}:{int(match[2] or 1) * gpus}"
    if type(gpu) is int and gpu > 0:
        found["gpu"] = gpu * gpus
    if found.keys() & {"gres", "gpu"}:
        found["tasks_per_gpu"] = 0  # one task that has all of them
    return {name: value for name, value in found.items() if name not in own}
