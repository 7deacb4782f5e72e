"""What may befall the disk between two runs, and a run: nothing of it changes what is wanted."""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

ROOTS = ("results", "results_b", "elsewhere")
WAYS = ("delete", "flip", "cut", "empty")
KEPT = (".config", ".snakemake")

LOSES_SCORES = ("store_hit", "store_removed", "results_removed")
LOSES_CACHES = ("cache_hit", "cache_removed", "cache_entry_removed")
LOSES_RESULTS = (*LOSES_SCORES, "result_hit", "step_results_removed", "stage_results_removed")
"""What takes scores, caches, or results of any kind."""

Accident = Callable[..., str | None]

ACCIDENTS: dict[str, tuple[list[tuple[object, ...]], Accident]] = {}
"""By name: the arguments an accident could have, and what happens; it returns what it met."""


def accident(*choices: tuple[object, ...]) -> Callable[[Accident], Accident]:
    def register(happen: Accident) -> Accident:
        ACCIDENTS[happen.__name__] = (list(choices), happen)
        return happen

    return register


def files(folder: Path, roots: Iterable[str]) -> list[Path]:
    found = [path for root in roots for path in (folder / root).rglob("*") if path.is_file()]
    return sorted(path for path in found if not set(path.parts) & set(KEPT))


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


def _hit(folder: Path, found: list[Path], number: int, way: str) -> str | None:
    if not found:
        return None
    path = found[number % len(found)]
    damage(path, way)
    return f"{way} {path.relative_to(folder)}"


MANY = [(number * 7, way) for number in range(25) for way in WAYS]


@accident(*MANY)
def result_hit(folder: Path, number: int, way: str) -> str | None:
    """Any file of the results but logs and the store."""
    found = [p for p in files(folder, ROOTS) if not {"scores", "eval_logs"} & set(p.parts)]
    return _hit(folder, found, number, way)


@accident(*MANY)
def store_hit(folder: Path, number: int, way: str) -> str | None:
    found = [path for path in files(folder, ROOTS) if "scores" in path.parts]
    return _hit(folder, found, number, way)


@accident(*MANY)
def cache_hit(folder: Path, number: int, way: str) -> str | None:
    found = [path for path in files(folder, ["cache"]) if path.suffix not in (".log", ".jsonl")]
    found += [path for path in files(folder, ["cache"]) if path.name.endswith("s.jsonl")]
    return _hit(folder, found, number, way)


def _remove(folder: Path, found: Iterable[Path], number: int) -> str | None:
    there = sorted(path for path in found if path.is_dir())
    if not there:
        return None
    path = there[number % len(there)]
    shutil.rmtree(path)
    return f"rm -r {path.relative_to(folder)}"


def _below(folder: Path, roots: Iterable[str], pattern: str) -> list[Path]:
    return [path for root in roots for path in (folder / root).glob(pattern)]


@accident(*[(number,) for number in range(4)])
def step_results_removed(folder: Path, number: int) -> str | None:
    return _remove(folder, _below(folder, ROOTS, "**/by_checkpoint/step_*"), number)


@accident((0,))
def bridge_results_removed(folder: Path, number: int) -> str | None:
    return _remove(folder, _below(folder, ROOTS, "**/bridge"), number)


@accident((0,), (1,))
def stage_results_removed(folder: Path, number: int) -> str | None:
    stages = {path.parent for path in _below(folder, ROOTS, "**/by_checkpoint")}
    return _remove(folder, stages, number)


@accident((0,))
def store_removed(folder: Path, number: int) -> str | None:
    return _remove(folder, _below(folder, ROOTS, "scores"), number)


@accident((0,))
def results_removed(folder: Path, number: int) -> str | None:
    return _remove(folder, [folder / root for root in ROOTS], number)


@accident(*[(number,) for number in range(6)])
def cache_entry_removed(folder: Path, number: int) -> str | None:
    entries = {path.parent for path in _below(folder, ["cache"], "**/meta.json")}
    return _remove(folder, entries, number)


@accident((0,))
def cache_removed(folder: Path, number: int) -> str | None:
    return _remove(folder, [folder / "cache"], number)


@accident((0,))
def snakemake_forgets(folder: Path, number: int) -> str | None:
    return _remove(folder, [folder / ".snakemake"], number)


@accident(*[(number,) for number in range(0, 40, 3)])
def touched(folder: Path, number: int) -> str | None:
    """A file gets the time of now, as from `touch` or a copy without times."""
    found = files(folder, [*ROOTS, "cache"])
    if not found:
        return None
    os.utime(found[number % len(found)])
    return f"touch {found[number % len(found)].relative_to(folder)}"
