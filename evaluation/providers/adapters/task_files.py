"""Files of a user's tasks: find them, check them before import, and record them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from evaluation.providers.adapters.contract import Line, RefusedTask, not_supported
from evaluation.providers.adapters.mirror_files import status_of

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
"""Words that a task's files must not contain, and why."""


def check_files(name: str, title: str, paths: Iterable[Path]) -> None:
    """Refuse unsafe task files before their code is imported.

    Raises:
        RefusedTask: A file is unsafe.
    """
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        for word, why in _UNSAFE.items():
            if word in text:
                raise not_supported(name, title, why)


def user_files(include_path: Path) -> list[Path]:
    """Return a user's task file, or all files of a folder except hidden ones and caches, in order."""
    if not include_path.is_dir():
        return [include_path] if include_path.is_file() else []
    found = (path.relative_to(include_path) for path in include_path.rglob("*") if path.is_file())
    return sorted(
        include_path / path
        for path in found
        if not any(part == "__pycache__" or part.startswith(".") for part in path.parts)
    )


def read_user_files(request: Line) -> Line:
    """Return the part of meta.json on a user's task files.

    Returns:
        `task_files`, their checksum, and `read` with one source; None and empty without
        `include_path`.

    Raises:
        RefusedTask: There are none, or they are not those that the request expects.
    """
    if request.get("include_path") is None:
        return {"task_files": None, "read": []}
    root = Path(request["include_path"])
    paths = user_files(root)
    if not paths:
        raise RefusedTask(f"`include_path` names {root}, which has no task files")
    files = [(str(path), status_of(path)) for path in paths]
    checksum = _checksum(root, paths)
    if request.get("task_files") not in (None, checksum):
        raise RefusedTask(f"the task files in {root} were changed since prefill; run prefill again")
    source = {"kind": "tasks", "dataset": str(root), "config": None, "files": files}
    return {"task_files": checksum, "read": [source]}


def _checksum(root: Path, paths: Iterable[Path]) -> str:
    """Return the checksum of the files' names below `root` and of their content."""
    digest = hashlib.sha256()
    for path in paths:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root)}\0{content}\n".encode())
    return digest.hexdigest()
