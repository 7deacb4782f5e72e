"""What may befall the disk between two runs: nothing of it changes what is requested."""

import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

ROOTS = ("results", "results_b", "elsewhere")

LOSES_SCORES = ("store_hit", "store_removed", "results_removed")
LOSES_RESULTS = (
    *(*LOSES_SCORES, "result_hit", "step_results_removed", "stage_results_removed"),
    *("bridge_results_removed", "all_times"),
)
"""What takes scores, or results of any kind."""


def _in_results(*patterns: str) -> list[str]:
    return [f"{root}/{pattern}" for root in ROOTS for pattern in patterns]


HIT = {
    "result_hit": _in_results("*", "*/*", "**/by_checkpoint/**/*", "**/bridge/**/*"),
    "store_hit": _in_results("scores/**/*"),
    "cache_hit": ["cache/**/*"],
    "touched": [*_in_results("**/*"), "cache/**/*"],
}
"""Accidents to one file, and where it may lie."""

REMOVED = {
    "step_results_removed": _in_results("**/by_checkpoint/*_*"),
    "bridge_results_removed": _in_results("**/bridge"),
    "stage_results_removed": _in_results("**/by_checkpoint/.."),
    "store_removed": _in_results("scores"),
    "results_removed": [*ROOTS],
    "cache_entry_removed": ["cache/**/meta.json/.."],
    "cache_removed": ["cache"],
    "snakemake_forgets": [".snakemake"],
}
"""Folders that are removed, and where they are."""

ACCIDENTS = (*HIT, *REMOVED, "all_times")
SPARED = {".config", ".snakemake", "eval_logs", "logs"}
"""Folders with nothing that a run reads."""


def draw(name: str, dice: random.Random) -> list[Any]:
    """Arguments for an accident."""
    if name == "all_times":
        return [dice.choice(("ckpts", "results", "cache")), dice.choice(("past", "now"))]
    way = [dice.choice(("delete", "flip", "cut", "empty"))] if name.endswith("_hit") else []
    return [dice.randrange(6 if name in REMOVED else 200), *way]


def befall(folder: Path, name: str, *arguments: Any) -> str | None:
    """An accident happens; returns what it met."""
    if name == "all_times":
        return _all_times(folder, *arguments)
    if not (there := _met(folder, name)):
        return None
    path = there[arguments[0] % len(there)]
    if name == "touched":
        os.utime(path)
    elif name in REMOVED:
        shutil.rmtree(path)
    else:
        damage(path, arguments[1])
    return f"{arguments[-1]} {path.relative_to(folder)}"


def _met(folder: Path, name: str) -> list[Path]:
    """The files or folders that an accident may meet."""
    if name in HIT:
        files = {path for pattern in HIT[name] for path in folder.glob(pattern) if path.is_file()}
        return sorted(path for path in files if not {*path.parts} & SPARED)
    folders: set[Path] = set()
    for pattern in REMOVED[name]:
        place = pattern.removesuffix("/..")
        folders |= {path.parent if place != pattern else path for path in folder.glob(place)}
    return sorted(path for path in folders if path.is_dir() and "eval_logs" not in path.parts)


def damage(path: Path, way: str) -> None:
    """As a disk or a hand does it; the file's time becomes that of now."""
    content = bytearray(path.read_bytes())
    if way == "delete":
        path.unlink()
    elif way == "flip" and content:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    else:
        path.write_bytes(b"" if way == "empty" else bytes(content[: len(content) // 2]))


def _all_times(folder: Path, root: str, when: str) -> str | None:
    """All files get one time, as in an image or from `touch` against a purge."""
    # Snakemake itself refuses records from the future, naming the file.
    moment = time.time() - (10 * 365 * 86400.0 if when == "past" else 0.0)
    for path in (folder / root).rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            os.utime(path, (moment, moment))
    return f"touch -d {when} {root}"
