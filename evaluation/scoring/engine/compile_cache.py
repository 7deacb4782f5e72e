"""Share compiled kernels with other jobs by the shared cache.

torch.compile stores compiled kernels in a folder of the node, which jobs on other nodes do not see.
Files in the shared cache carry them over:

    <cache>/compiled/torch-<version>_transformers-<version>_<GPU model>/<model>-<graphs>.artifacts

PyTorch's `torch.compiler.save_cache_artifacts` and `load_cache_artifacts` write and read them. PyTorch
decides whether an artifact fits, by a key over the graph, its own sources, the GPU and its settings.
A process that saves several times gets all its artifacts each time, but PyTorch 2.13 loads only those
that the last save added. So each file stays, and jobs load them all.

No locks are needed: a file is renamed once it is complete, and its name depends on the graphs in it. So
jobs that compiled the same graphs write the same file. If a file cannot be read or written, the job
logs a warning and compiles for itself.

Artifacts hold code that jobs run, so only trusted users may have write access to the folder.
"""

import atexit
import gzip
import importlib.metadata
import logging
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch

from evaluation.checkpoints.format import Checkpoint
from evaluation.files import atomic_path, remove_oldest
from evaluation.fingerprints import fingerprint, unordered
from evaluation.wording import reason_of

log = logging.getLogger(__name__)

FOLDER = "compiled"
"""Folder in the shared cache."""
MOST = 64
"""Largest number of files of one model; the oldest ones are deleted."""
LEAST_FREE = 512 << 20
"""Free bytes that the node's own folder needs."""
_INDUCTOR = "TORCHINDUCTOR_CACHE_DIR"


class CompileCache:
    """Kernels that jobs on one model of GPU have compiled for one model in one dtype.

    Args:
        folder: Folder of artifacts for these versions and this GPU.
        model: Fingerprint of the architecture and its dtype.
    """

    def __init__(self, folder: Path, model: str) -> None:
        self.folder, self.model = folder, model
        self._stored: set[str] = set()
        self._is_writable = True

    def load(self) -> None:
        """Load the kernels that other jobs have compiled into PyTorch."""
        use_node_folder()
        for path in self._files():
            try:
                self._stored |= _load(path)
            except FileNotFoundError:
                continue  # an old file, deleted since it was listed
            except Exception as error:  # noqa: BLE001 - unpacking foreign bytes may raise anything
                _warn(f"{path}: compiled kernels cannot be loaded from it", error)

    def keep(self) -> None:
        """Write all kernels that this process has compiled, if some of them are not stored."""
        artifacts = torch.compiler.save_cache_artifacts() if self._is_writable else None
        if artifacts is None:
            return
        payload, info = artifacts
        keys = _keys(info)
        if keys <= self._stored:
            return
        path = self.folder / f"{self.model}-{fingerprint(sorted(keys))}.artifacts"
        try:
            with atomic_path(path) as temporary:
                temporary.write_bytes(gzip.compress(payload, compresslevel=1))
        except OSError as error:
            self._is_writable = False
            _warn(f"{self.folder}: compiled kernels cannot be stored", error)
            return
        self._stored |= keys
        log.info("compiled kernels stored in %s (%.1f MB)", path, len(payload) / 1e6)
        remove_oldest(self._files(), most=MOST)

    def _files(self) -> list[Path]:
        return list(self.folder.glob(f"{self.model}-*.artifacts"))


def compile_cache(cache: Path, checkpoint: Checkpoint, dtype: str, gpu: str) -> CompileCache:
    """Return the compile cache for this architecture and model of GPU; its folder need not exist."""
    versions = (f"{name}-{importlib.metadata.version(name)}" for name in ("torch", "transformers"))
    place = "_".join([*versions, re.sub(r"[^A-Za-z0-9.-]+", "-", gpu)])
    model = fingerprint(
        [checkpoint.kind, unordered(checkpoint.model_config), checkpoint.use_mup, dtype]
    )
    return CompileCache(cache / FOLDER / place, model)


def use_node_folder() -> Path | None:
    """Have torch and Triton compile into a writable folder of this node; warn and return None without.

    It is the one that the user has set (TORCHINDUCTOR_CACHE_DIR), or a new temporary folder that is
    deleted when this process ends. torch's default is unsafe: it runs code from a folder of
    predictable name, which any user could have made.
    """
    given = os.environ.get(_INDUCTOR)
    try:
        folder = Path(given or tempfile.mkdtemp(prefix="torchinductor_"))
        if not given:
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        if (free := shutil.disk_usage(folder).free) < LEAST_FREE:
            raise OSError(f"only {free >> 20} MB left")
    except OSError as error:
        place = given or os.environ.get("TMPDIR", "the temporary folder")
        log.warning(
            "%s: nothing can be compiled there (%s); set TMPDIR to a folder on this node with %d MB left",
            place, reason_of(error), LEAST_FREE >> 20,
        )  # fmt: skip
        return None
    os.environ[_INDUCTOR] = str(folder)
    os.environ.setdefault("TRITON_CACHE_DIR", str(folder / "triton"))
    return folder


def _load(path: Path) -> set[str]:
    """Load a file's artifacts into PyTorch and return their keys; a damaged file raises any error."""
    with open(path, "rb") as file, gzip.open(file) as content:
        payload = content.read()
    info = torch.compiler.load_cache_artifacts(payload) if payload else None
    if info is None:
        raise ValueError("PyTorch cannot read it")
    return _keys(info)


def _keys(info: Any) -> set[str]:
    return {f"{kind}/{key}" for kind, keys in info.artifacts.items() for key in keys}


def _warn(what: str, error: Exception) -> None:
    log.warning(
        "%s (%s); this job compiles for itself, which takes a minute and gives the same numbers; "
        "correct the folder, or delete it",
        what,
        reason_of(error),
    )
