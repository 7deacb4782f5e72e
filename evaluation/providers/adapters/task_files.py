"""Files of a user's tasks, and their checksum."""

import hashlib
from pathlib import Path
from typing import Any

from evaluation.providers.adapters.mirror_files import status_of
from evaluation.providers.adapters.refusals import RefusedTask


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


def check_user_files(include_path: str | None, expected: str | None) -> dict[str, Any]:
    """Return the part of `info` on a user's task files: `task_files`, their checksum, and `read`.

    Raises:
        RefusedTask: There are none, or their checksum is not the expected one.
    """
    if include_path is None:
        return {"task_files": None, "read": []}
    root = Path(include_path)
    if not (paths := user_files(root)):
        raise RefusedTask(f"`include_path` names {root}, which has no task files")
    files = [(str(path), status_of(path)) for path in paths]
    digest = hashlib.sha256()
    for path in paths:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root)}\0{content}\n".encode())
    if expected not in (None, digest.hexdigest()):
        raise RefusedTask(f"the task files in {root} were changed since prefill; run prefill again")
    source = {"kind": "tasks", "dataset": include_path, "config": None, "files": files}
    return {"task_files": digest.hexdigest(), "read": [source]}
