"""What may befall the disk between two runs, and a run: nothing of it changes what is requested."""

import os
import shutil
import time
from collections.abc import Callable, Iterable
from itertools import combinations, product
from pathlib import Path

ROOTS = ("results", "results_b", "elsewhere")
WAYS = ("delete", "flip", "cut", "empty")

STORED = ("scores", "eval_logs")

LOSES_SCORES = ("store_hit", "store_removed", "results_removed", "stores_exchanged")
LOSES_CACHES = ("cache_hit", "cache_removed", "cache_entry_removed")
LOSES_RESULTS = (*LOSES_SCORES, "result_hit", "step_results_removed", "stage_results_removed")
"""What takes scores, caches, or results of any kind."""

Accident = Callable[..., str | None]


def _files(folder: Path, roots: Iterable[str]) -> list[Path]:
    found = (path for root in roots for path in (folder / root).rglob("*") if path.is_file())
    return sorted(path for path in found if not set(path.parts) & {".config", ".snakemake"})


def _cached(files: list[Path]) -> list[Path]:
    plain = [path for path in files if path.suffix not in (".log", ".jsonl")]
    return plain + [path for path in files if path.name.endswith("s.jsonl")]


HIT: dict[str, tuple[tuple[str, ...], Callable[[list[Path]], list[Path]]]] = {
    "result_hit": (ROOTS, lambda files: [p for p in files if not {*STORED} & set(p.parts)]),
    "store_hit": (ROOTS, lambda files: [path for path in files if "scores" in path.parts]),
    "cache_hit": (("cache",), _cached),
}
"""Accidents to one file, and which files there are for it."""

REMOVED: dict[str, tuple[int, tuple[str, ...]]] = {
    "step_results_removed": (4, tuple(f"{root}/**/by_checkpoint/*_*" for root in ROOTS)),
    "bridge_results_removed": (1, tuple(f"{root}/**/bridge" for root in ROOTS)),
    "stage_results_removed": (2, tuple(f"{root}/**/by_checkpoint/.." for root in ROOTS)),
    "store_removed": (1, tuple(f"{root}/scores" for root in ROOTS)),
    "results_removed": (1, ROOTS),
    "cache_entry_removed": (6, ("cache/**/meta.json/..",)),
    "cache_removed": (1, ("cache",)),
    "snakemake_forgets": (1, (".snakemake",)),
}
"""Folders that are removed: how many there may be, and where they are."""


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


def _hit(name: str) -> Accident:
    def happen(folder: Path, number: int, way: str) -> str | None:
        roots, choose = HIT[name]
        if not (found := choose(_files(folder, roots))):
            return None
        path = found[number % len(found)]
        damage(path, way)
        return f"{way} {path.relative_to(folder)}"

    return happen


def _remove(name: str) -> Accident:
    def happen(folder: Path, number: int) -> str | None:
        found: set[Path] = set()
        for pattern in REMOVED[name][1]:
            place = pattern.removesuffix("/..")
            found |= {path.parent if place != pattern else path for path in folder.glob(place)}
        if not (there := sorted(filter(Path.is_dir, found))):
            return None
        path = there[number % len(there)]
        shutil.rmtree(path)
        return f"rm -r {path.relative_to(folder)}"

    return happen


def touched(folder: Path, number: int) -> str | None:
    """A file gets the time of now, as from `touch` or a copy without times."""
    if not (found := _files(folder, [*ROOTS, "cache"])):
        return None
    os.utime(found[number % len(found)])
    return f"touch {found[number % len(found)].relative_to(folder)}"


TIMES = {"past": -10 * 365 * 86400.0, "now": 0.0}
"""Seconds from now; Snakemake itself refuses records from the future, naming the file."""


def all_times(folder: Path, root: str, when: str) -> str | None:
    """All files get one time, as in an image or from `touch` against a purge."""
    files = [path for path in (folder / root).rglob("*") if path.is_file()]
    moment = time.time() + TIMES[when]
    for path in files:
        if ".snakemake" not in path.parts:
            os.utime(path, (moment, moment))
    return f"touch -d {when} {root}" if files else None


def stores_exchanged(folder: Path, number: int) -> str | None:
    """Two folders of the store get each other's name."""
    pairs = [
        pair
        for root in ROOTS
        for pair in combinations(sorted((folder / root / "scores").glob("*/")), 2)
    ]
    if not pairs:
        return None
    one, other = pairs[number % len(pairs)]
    kept = one.with_name("kept")
    one.rename(kept)
    other.rename(one)
    kept.rename(other)
    return f"exchange {one.relative_to(folder)} {other.name}"


MANY = [(number * 7, way) for number in range(25) for way in WAYS]

ACCIDENTS: dict[str, tuple[list[tuple[object, ...]], Accident]] = {
    **{name: (list[tuple[object, ...]](MANY), _hit(name)) for name in HIT},
    **{name: ([(n,) for n in range(most)], _remove(name)) for name, (most, _) in REMOVED.items()},
    "all_times": (list(product(("ckpts", "results", "cache"), TIMES)), all_times),
    "stores_exchanged": ([(number,) for number in range(5)], stores_exchanged),
    "touched": ([(number,) for number in range(0, 40, 3)], touched),
}
"""By name: the arguments an accident could have, and what happens; it returns what it met."""
