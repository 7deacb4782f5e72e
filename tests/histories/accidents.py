"""What may befall the disk between two runs: nothing of it changes what is requested."""

import os
import random
import shutil
import time
from itertools import combinations
from pathlib import Path
from typing import Any

ROOTS = ("results", "results_b", "elsewhere")

LOSES_SCORES = ("store_hit", "store_removed", "results_removed", "stores_exchanged")
LOSES_CACHES = ("cache_hit", "cache_removed", "cache_entry_removed")
LOSES_RESULTS = (*LOSES_SCORES, "result_hit", "step_results_removed", "stage_results_removed")
"""What takes scores, caches, or results of any kind."""

HIT = {"result_hit": ROOTS, "store_hit": ROOTS, "cache_hit": ("cache",)}
"""Accidents to one file, and where it may lie."""

REMOVED: dict[str, tuple[str, ...]] = {
    "step_results_removed": tuple(f"{root}/**/by_checkpoint/*_*" for root in ROOTS),
    "bridge_results_removed": tuple(f"{root}/**/bridge" for root in ROOTS),
    "stage_results_removed": tuple(f"{root}/**/by_checkpoint/.." for root in ROOTS),
    "store_removed": tuple(f"{root}/scores" for root in ROOTS),
    "results_removed": ROOTS,
    "cache_entry_removed": ("cache/**/meta.json/..",),
    "cache_removed": ("cache",),
    "snakemake_forgets": (".snakemake",),
}
"""Folders that are removed, and where they are."""

ACCIDENTS = (*HIT, *REMOVED, "all_times", "stores_exchanged", "touched")


def draw(name: str, dice: random.Random) -> list[Any]:
    """Arguments for an accident."""
    if name == "all_times":
        return [dice.choice(("ckpts", "results", "cache")), dice.choice(("past", "now"))]
    way = [dice.choice(("delete", "flip", "cut", "empty"))] if name in HIT else []
    return [dice.randrange(6 if name in REMOVED else 200), *way]


def befall(folder: Path, name: str, *arguments: Any) -> str | None:
    """An accident happens; returns what it met."""
    if name == "all_times":
        return _all_times(folder, *arguments)
    if name == "stores_exchanged":
        return _stores_exchanged(folder, *arguments)
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
    if name in REMOVED:
        found: set[Path] = set()
        for pattern in REMOVED[name]:
            place = pattern.removesuffix("/..")
            found |= {path.parent if place != pattern else path for path in folder.glob(place)}
        return sorted(filter(Path.is_dir, found))
    roots = HIT.get(name, (*ROOTS, "cache"))
    files = sorted(p for root in roots for p in (folder / root).rglob("*") if p.is_file())
    files = [path for path in files if not {*path.parts} & {".config", ".snakemake"}]
    if name == "result_hit":
        return [path for path in files if not {*path.parts} & {"scores", "eval_logs"}]
    if name == "store_hit":
        return [path for path in files if "scores" in path.parts]
    if name == "cache_hit":
        plain = [path for path in files if path.suffix not in (".log", ".jsonl")]
        return plain + [path for path in files if path.name.endswith("s.jsonl")]
    return files


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
    files = [path for path in (folder / root).rglob("*") if path.is_file()]
    # Snakemake itself refuses records from the future, naming the file.
    moment = time.time() - (10 * 365 * 86400.0 if when == "past" else 0.0)
    for path in files:
        if ".snakemake" not in path.parts:
            os.utime(path, (moment, moment))
    return f"touch -d {when} {root}" if files else None


def _stores_exchanged(folder: Path, number: int) -> str | None:
    """Two folders of the store get each other's name."""
    stores = [sorted((folder / root / "scores").glob("*/")) for root in ROOTS]
    if not (pairs := [pair for one in stores for pair in combinations(one, 2)]):
        return None
    one, other = pairs[number % len(pairs)]
    kept = one.with_name("kept")
    one.rename(kept)
    other.rename(one)
    kept.rename(other)
    return f"exchange {one.relative_to(folder)} {other.name}"
