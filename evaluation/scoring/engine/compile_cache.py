"""Kernels that another job has compiled, for jobs that compile the same.

torch.compile keeps what it has compiled in a folder of the node (TORCHINDUCTOR_CACHE_DIR), which a
job on another node does not see. Here that is carried over by files in the shared cache:

    <cache>/compiled/torch-<version>_transformers-<version>_<GPU model>/<model>-<keys>.artifacts

one for each set of shapes that a model was run in, made and read by PyTorch's own
`torch.compiler.save_cache_artifacts` and `load_cache_artifacts`, which hold the kernels themselves.
The folder of the node is not put on the shared file system instead: it is thousands of small files
and locks, which 64 jobs that start at once would wait for.

Nothing here is locked. A file is written beside its place and renamed, so it is there whole or not
at all; its name says which graphs are in it, so jobs that compiled the same at the same time write
the same file, and others write beside it. Whether an artifact fits is decided by PyTorch, by a key
over the graph, its own sources, the GPU and its settings, so a foreign one is never used. A cache
that cannot be read or written is a warning, and the job compiles for itself.

Artifacts hold code, so the folder must be writable by none but those whose code one would run.
"""

import atexit
import contextlib
import hashlib
import importlib.metadata
import json
import logging
import os
import re
import secrets
import shutil
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

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
_MAGIC = b"evaluation compiled 1\n"
_SUFFIX = ".artifacts"
_NODE_FOLDERS = ("/dev/shm", "/var/tmp")
_INDUCTOR = "TORCHINDUCTOR_CACHE_DIR"


class Damaged(Exception):
    """A file of artifacts that is not as it was written."""


@dataclass
class CompileCache:
    """What jobs on one model of GPU have compiled for one model in one dtype."""

    folder: Path
    model: str
    _known: set[str] = field(default_factory=set)
    _written: Path | None = None
    _told: bool = False
    _closed: bool = False

    def load(self) -> int:
        """Take over what others have compiled; return how many graphs and kernels."""
        use_node_folder()
        before = len(self._known)
        for path in self._files():
            try:
                keys, payload = read_artifacts(path)
                if not keys <= self._known:
                    _take_over(payload)
            except FileNotFoundError:
                continue  # an old one, removed since it was listed
            except (OSError, Damaged) as error:
                self._warn(f"{path}: compiled kernels cannot be taken from it ({_reason(error)})")
                continue
            self._known |= keys
        return len(self._known) - before

    def keep(self) -> bool:
        """Write what this process has compiled, if no other has; return whether it wrote."""
        if self._closed:
            return False
        made = torch.compiler.save_cache_artifacts()
        if made is None:
            return False
        payload, info = made
        keys = {f"{kind}/{key}" for kind, some in info.artifacts.items() for key in some}
        if keys <= self._known:
            return False
        self._known |= keys
        path = self.folder / f"{self.model}-{fingerprint(sorted(keys))}{_SUFFIX}"
        try:
            write_artifacts(path, keys, payload)
            self._remove_older(path)
        except OSError as error:
            self._closed = True
            self._warn(f"{self.folder}: what was compiled cannot be kept ({_reason(error)})")
            return False
        log.info("compiled kernels kept in %s (%.1f MB)", path, len(payload) / 1e6)
        return True

    def _files(self) -> list[Path]:
        """List the files, the newest first."""
        try:
            found = [path for path in self.folder.iterdir() if self._is_ours(path.name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            self._warn(f"{self.folder}: compiled kernels cannot be read ({_reason(error)})")
            return []
        return sorted(found, key=_age)[:MOST]

    def _is_ours(self, name: str) -> bool:
        return name.startswith(f"{self.model}-") and name.endswith(_SUFFIX)

    def _remove_older(self, written: Path) -> None:
        """Remove what this job wrote before, all of which is in the new file, and the oldest of others."""
        if self._written is not None:
            self._written.unlink(missing_ok=True)
        self._written = written
        found = [path for path in self.folder.iterdir() if self._is_ours(path.name)]
        for path in sorted(found, key=_age)[MOST:]:
            path.unlink(missing_ok=True)

    def _warn(self, what: str) -> None:
        """Warn once for a job: what comes after it mostly follows from it."""
        if not self._told:
            log.warning(
                "%s; this job compiles for itself, which takes a minute, and gives the same "
                "numbers; correct the folder, or delete it",
                what,
            )
        self._told = True


def compile_cache(cache: Path, checkpoint: Checkpoint, dtype: str, gpu: str) -> CompileCache:
    """Return the compile cache for this architecture and GPU, in the shared folder `cache`."""
    versions = (f"{name}-{importlib.metadata.version(name)}" for name in ("torch", "transformers"))
    place = "_".join([*versions, re.sub(r"[^A-Za-z0-9.-]+", "-", gpu)])
    model = fingerprint(
        [checkpoint.kind, unordered(checkpoint.model_config), checkpoint.use_mup, dtype]
    )
    return CompileCache(Path(cache) / FOLDER / place, model)


def use_node_folder() -> Path | None:
    """Have torch and Triton compile into a folder of this node that can be written to.

    That is torch's own choice (TORCHINDUCTOR_CACHE_DIR, or a folder in TMPDIR) as long as it can be;
    returns the one that was taken, None, after a warning, if there is none.
    """
    given = os.environ.get(_INDUCTOR)
    own = [Path(given)] if given else []
    usual = [Path(folder, _user()) for folder in (*_temporary(), *_NODE_FOLDERS)]
    # Of a name that others know, in a folder of all users; what is set is the user's own choice.
    foreign = {folder: reason for folder in usual if (reason := _foreign(folder))}
    for folder, reason in foreign.items():
        log.warning("%s is left alone: %s; what is compiled there is run", folder, reason)
    for folder in [*own, *usual, *(_private(folder.parent) for folder in foreign)]:
        if folder in foreign or (reason := unusable(folder)):
            log.debug("%s: %s", folder, foreign.get(folder) or reason)
            continue
        if own and folder != own[0]:
            log.warning(
                "%s=%s cannot be used (%s); compiling in %s",
                _INDUCTOR,
                given,
                unusable(own[0]),
                folder,
            )
        os.environ[_INDUCTOR] = str(folder)
        os.environ.setdefault("TRITON_CACHE_DIR", str(folder / "triton"))
        return folder
    log.warning(
        "none of %s can be written to with %d MB left, and compiling needs such a folder; set TMPDIR "
        "to one on this node", ", ".join(map(str, own + usual)), LEAST_FREE >> 20,
    )  # fmt: skip
    return None


def _user() -> str:
    return f"torchinductor_{os.getuid()}"


def _private(parent: Path) -> Path:
    """Return a name that nobody could have taken before, for this process alone."""
    folder = parent / f"{_user()}_{secrets.token_hex(8)}"
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _foreign(folder: Path) -> str | None:
    """Return why a folder may hold another user's code; None if it does not, or is not there."""
    with contextlib.suppress(OSError):  # which `unusable` tells
        folder.mkdir(mode=0o700, parents=True)
    try:
        found = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return "it is a link or a file"
    if found.st_uid != os.getuid():
        return f"it belongs to user {found.st_uid}"
    return "anybody may write to it" if found.st_mode & stat.S_IWOTH else None


def _temporary() -> list[str]:
    try:
        return [tempfile.gettempdir()]
    except FileNotFoundError:  # no folder at all can be written to
        return []


def unusable(folder: Path) -> str | None:
    """Return why nothing can be compiled in a folder, which is made if it can be; None if it can."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(b"0" * 4096)
            file.flush()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return _reason(error)
    return f"only {free >> 20} MB left" if free < LEAST_FREE else None


def write_artifacts(path: Path, keys: set[str], payload: bytes) -> None:
    """Write a file that is there whole or not at all; raise OSError."""
    header = {"sha256": hashlib.sha256(payload).hexdigest(), "keys": sorted(keys)}
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        file.write(_MAGIC + json.dumps(header).encode() + b"\n")
        file.write(payload)


def read_artifacts(path: Path) -> tuple[set[str], bytes]:
    """Return the keys and the artifacts of a file; raise OSError, and Damaged if it is not as written."""
    with open_regular(path) as file:
        content = file.read()
    if not content.startswith(_MAGIC):
        raise Damaged("it is no file of them")
    head, _, payload = content.removeprefix(_MAGIC).partition(b"\n")
    try:
        header = json.loads(head)
        digest, keys = str(header["sha256"]), set(map(str, header["keys"]))
    except (ValueError, KeyError, TypeError):
        raise Damaged("its header is damaged") from None
    if hashlib.sha256(payload).hexdigest() != digest:
        raise Damaged("it is damaged or ends early")
    return keys, payload


def _take_over(payload: bytes) -> None:
    """Take artifacts over; raise Damaged if they cannot be read, OSError if the folder is full."""
    try:
        info = torch.compiler.load_cache_artifacts(payload)
    except OSError:
        raise
    except Exception as error:  # whatever unpacking foreign bytes may raise
        raise Damaged(f"PyTorch cannot read it: {_reason(error)}") from error
    if info is None:
        raise Damaged("PyTorch cannot read it")


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) else None
    return text or str(error).partition("\n")[0][:160] or type(error).__name__
