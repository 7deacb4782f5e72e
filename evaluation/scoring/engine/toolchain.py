"""Whether the driver and the compiler are there that PyTorch's build takes to run on a GPU.

A build of PyTorch brings CUDA's libraries, but neither the driver nor what Triton compiles its
launchers with: a C compiler and the headers of Python.
"""

import os
import shutil
import sysconfig
from pathlib import Path

import torch

MINIMUM_DRIVER = {11: 450, 12: 525, 13: 580}
"""First part of the oldest driver's version for each major version of CUDA.

NVIDIA, CUDA Compatibility, Minor Version Compatibility, table 1:
https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
"""

OLDEST_BUILD = 12
"""Major version of CUDA of the oldest build that there is of PyTorch 2.13 (cu126)."""

ANOTHER_BUILD = "docs/gpu.md says how"


def driver_fault(driver: str | None) -> str | None:
    """Return why this PyTorch cannot use a GPU under a driver such as `535.129.03`; None if it may."""
    if torch.version.cuda is None:
        return f"it is built without CUDA; install another build ({ANOTHER_BUILD})"
    built, found = _leading(torch.version.cuda), _leading(driver)
    least = MINIMUM_DRIVER.get(built)
    if least is None or not found or found >= least:
        return None
    has_build = built > OLDEST_BUILD and found >= MINIMUM_DRIVER[OLDEST_BUILD]
    remedy = f"install a build for CUDA {OLDEST_BUILD}" if has_build else "exclude the node"
    return (
        f"it is built for CUDA {torch.version.cuda}, which needs NVIDIA driver {least} or newer, and "
        f"the driver is {driver}; {remedy} ({ANOTHER_BUILD}), have the driver updated"
    )


def _leading(version: str | None) -> int:
    """Return the first number of a version; 0 where there is none."""
    first = (version or "").partition(".")[0]
    return int(first) if first.isdigit() else 0


def compiler_fault() -> str | None:
    """Return what Triton lacks to compile, looked for where it looks; None if nothing, or without CUDA."""
    if torch.version.cuda is None:
        return None
    given = os.environ.get("CC")
    names = [given] if given else ["gcc", "clang"]
    if not any(shutil.which(name) for name in names):
        which = f"CC={given} is no program" if given else "there is neither gcc nor clang on PATH"
        return (
            f"{which}, and Triton needs a C compiler on every node with a GPU; load the site's "
            "module of one (on the node, before the job's command), or set CC to it"
        )
    folder = _headers()
    others = os.pathsep.join(os.environ.get(name, "") for name in ("CPATH", "C_INCLUDE_PATH"))
    folders = [folder, *(Path(each) for each in others.split(os.pathsep) if each)]
    if not any((each / "Python.h").is_file() for each in folders):
        return (
            f"{folder / 'Python.h'} is not there, and Triton needs the headers of Python on every "
            "node with a GPU; install them (Debian's python3-dev), or make the environment with a "
            "Python that has them"
        )
    return None


def _headers() -> Path:
    scheme = sysconfig.get_default_scheme()
    scheme = "posix_prefix" if scheme == "posix_local" else scheme
    return Path(sysconfig.get_paths(scheme=scheme)["include"])
