"""Kernels that another job has compiled, for jobs that compile the same.

torch.compile keeps what it has compiled in a folder of the node, which a job on another node does not
see. Here that is carried over by files in the shared cache:

    <cache>/compiled/torch-<version>_transformers-<version>_<GPU model>/<model>-<graphs>.artifacts

one for each set of shapes that a model was run in, made and read by PyTorch's own
`torch.compiler.save_cache_artifacts` and `load_cache_artifacts`, which hold the kernels themselves.
The folder of the node is not put on the shared file system instead: it is thousands of small files
and locks, which 64 jobs that start at once would wait for.

Nothing here is locked. A file is written beside its place and renamed, so it is there whole or not
at all; its name says which graphs are in it, so jobs that compiled the same at the same time write
the same file, and others write beside it. It is compressed by gzip, whose checksum shows damage.
Whether an artifact fits is decided by PyTorch, by a key over the graph, its own sources, the GPU and
its settings, so a foreign one is never used. A cache that cannot be read or written is a warning, and
the job compiles for itself.

Artifacts hold code, so the folder must be writable by none but those whose code one would run.
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
from evaluation.files import atomic_path, fingerprint, open_regular, unordered

log = logging.getLogger(__name__)

FOLDER = "compiled"
"""In the shared cache."""
MOST = 16
"""Files of one model; the oldest beyond them go."""
LEAST_FREE = 512 << 20
"""Bytes that the node's own folder should have left."""
_INDUCTOR = "TORCHINDUCTOR_CACHE_DIR"


class CompileCache:
    """What jobs on one model of GPU have compiled for one model in one dtype."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder, self.model = folder, model
        self._known: set[str] = set()
        self._written: Path | None = None
        self._has_warned = False
        self._is_closed = False

    def load(self) -> int:
        """Take over what others have compiled; return how many graphs and kernels."""
        use_node_folder()
        before = len(self._known)
        try:
            files = self._files()
        except OSError as error:
            self._warn(f"{self.folder}: compiled kernels cannot be read ({_reason(error)})")
            return 0
        for path in files:
            try:
                self._known |= _take_over(path)
            except FileNotFoundError:
                continue  # an old one, removed since it was listed
            except Exception as error:  # noqa: BLE001 - unpacking foreign bytes may raise anything
                self._warn(f"{path}: compiled kernels cannot be taken from it ({_reason(error)})")
        return len(self._known) - before

    def keep(self) -> bool:
        """Write what this process has compiled, if no other has; return whether it wrote."""
        made = None if self._is_closed else torch.compiler.save_cache_artifacts()
        if made is None:
            return False
        payload, info = made
        keys = _keys(info)
        if keys <= self._known:
            return False
        self._known |= keys
        path = self.folder / f"{self.model}-{fingerprint(sorted(keys))}.artifacts"
        try:
            with atomic_path(path) as temporary:
                temporary.write_bytes(gzip.compress(payload, compresslevel=1))
            self._remove_older(path)
        except OSError as error:
            self._is_closed = True
            self._warn(f"{self.folder}: what was compiled cannot be kept ({_reason(error)})")
            return False
        log.info("compiled kernels kept in %s (%.1f MB)", path, len(payload) / 1e6)
        return True

    def _files(self) -> list[Path]:
        """List the files, the newest first; raise OSError."""
        if not self.folder.exists():
            return []
        found = [path for path in self.folder.iterdir() if path.match(f"{self.model}-*.artifacts")]
        return sorted(found, key=_age)

    def _remove_older(self, written: Path) -> None:
        """Remove what this job wrote before, all of which is in the new file, and the oldest of others."""
        if self._written is not None:
            self._written.unlink(missing_ok=True)
        self._written = written
        for path in self._files()[MOST:]:
            path.unlink(missing_ok=True)

    def _warn(self, what: str) -> None:
        """Warn once for a job: what comes after it mostly follows from it."""
        if not self._has_warned:
            log.warning(
                "%s; this job compiles for itself, which takes a minute, and gives the same "
                "numbers; correct the folder, or delete it",
                what,
            )
        self._has_warned = True


def compile_cache(cache: Path, checkpoint: Checkpoint, dtype: str, gpu: str) -> CompileCache:
    """Return the compile cache for this architecture and GPU, in the shared folder `cache`."""
    versions = (f"{name}-{importlib.metadata.version(name)}" for name in ("torch", "transformers"))
    place = "_".join([*versions, re.sub(r"[^A-Za-z0-9.-]+", "-", gpu)])
    model = fingerprint(
        [checkpoint.kind, unordered(checkpoint.model_config), checkpoint.use_mup, dtype]
    )
    return CompileCache(cache / FOLDER / place, model)


def use_node_folder() -> Path | None:
    """Have torch and Triton compile into a folder of this node that can be written to.

    It is the one that the user has set (TORCHINDUCTOR_CACHE_DIR), or a new one in the temporary folder,
    that goes with this process. torch's own choice has a name that others know, in a folder of all
    users, and what lies there is run.

    Returns:
        The folder; None, after a warning, if nothing can be written to it.
    """
    given = os.environ.get(_INDUCTOR)
    place = given or os.environ.get("TMPDIR", "the temporary folder")
    try:
        folder = Path(given or tempfile.mkdtemp(prefix="torchinductor_"))
        if not given:
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
            file.flush()
        free = shutil.disk_usage(folder).free
        reason = f"only {free >> 20} MB left" if free < LEAST_FREE else None
    except OSError as error:
        reason = _reason(error)
    if reason is not None:
        log.warning(
            "%s: nothing can be compiled there (%s); set TMPDIR to a folder on this node with %d MB left",
            place, reason, LEAST_FREE >> 20,
        )  # fmt: skip
        return None
    os.environ[_INDUCTOR] = str(folder)
    os.environ.setdefault("TRITON_CACHE_DIR", str(folder / "triton"))
    return folder


def _take_over(path: Path) -> set[str]:
    """Give a file's artifacts to PyTorch; return their keys. Raises whatever damage leads to."""
    with open_regular(path) as file, gzip.open(file) as content:
        payload = content.read()
    info = torch.compiler.load_cache_artifacts(payload) if payload else None
    if info is None:
        raise ValueError("PyTorch cannot read it")
    return _keys(info)


def _keys(info: Any) -> set[str]:
    return {f"{kind}/{key}" for kind, keys in info.artifacts.items() for key in keys}


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) else None
    return text or str(error).partition("\n")[0][:160] or type(error).__name__
