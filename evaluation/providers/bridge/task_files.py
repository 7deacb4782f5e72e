"""Files that describe tasks: what they may not hold, and which of a user's own a task is made of."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from evaluation.providers.bridge.files import Line, Refused
from evaluation.providers.bridge.statuses import status_of

_UNSAFE = {
    "unsafe_code: true": "its metric runs the programs that a model writes",
    "code_eval": "its metric runs the programs that a model writes",
    "hf_evaluate": "its metric is code that is fetched when it is used",
    "evaluate.load": "its metric is code that is fetched when it is used",
    "pickle": "its scorer unpickles data",
    "import openai": "its metric asks another model",
    "subprocess": "its scorer starts programs",
    "exec(": "its scorer runs code",
}
"""What the files of a task may not hold, and why."""


def check_files(name: str, title: str, paths: Iterable[Path]) -> None:
    """Before the task's own code is imported: does it do what cannot be done safely here?"""
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        for word, why in _UNSAFE.items():
            if word in text:
                raise Refused(f"{name} is not taken from {title}, as {why}")


def own_files(include_path: Path) -> list[Path]:
    """A user's task files: the file itself, or all of a folder but hidden ones and caches."""
    if not include_path.is_dir():
        return [include_path] if include_path.is_file() else []
    found = (path for path in include_path.rglob("*") if path.is_file())
    return sorted(path for path in found if _counts(path.relative_to(include_path)))


def _counts(path: Path) -> bool:
    return not any(part == "__pycache__" or part.startswith(".") for part in path.parts)


def read_own_files(request: Line) -> Line:
    """What meta.json says of a user's task files: `task_files`, and one more source in `read`.

    Raises:
        Refused: there are none, or they are not those that `request` expects.
    """
    if request.get("include_path") is None:
        return {"task_files": None, "read": []}
    root = Path(request["include_path"])
    paths = own_files(root)
    if not paths:
        raise Refused(f"`include_path` names {root}, where no task files are")
    files = [(str(path), status_of(path)) for path in paths]
    checksum = _checksum(root, paths)
    if request.get("task_files") not in (None, checksum):
        raise Refused(f"the task files in {root} were changed since prefill; run prefill again")
    source = {"kind": "tasks", "dataset": str(root), "config": None, "files": files}
    return {"task_files": checksum, "read": [source]}


def _checksum(root: Path, paths: Iterable[Path]) -> str:
    """Of their names below `root`, and of what they hold."""
    digest = hashlib.sha256()
    for path in paths:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root)}\0{content}\n".encode())
    return digest.hexdigest()
