"""What a history leaves, compared with what a fresh run leaves."""

import json
import re
from collections.abc import Iterator
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.histories.world import World

TIMES = {"seconds", "tokens_per_second", "tokens_processed", "made", "started", "run"}
"""Keys of JSON that say when something was made, how fast, and in which batch."""

OWN = {".config", ".made", ".snakemake", "scores", "eval_logs"}
"""Folders of the workflow itself: no results, or packed as the jobs happened to run."""

CODE = re.compile(r"<dt>code</dt> <dd>[^<]*</dd>")
"""Which commit wrote a page; somebody may commit while a history is played."""


def differences(world: World) -> Iterator[str]:
    """Files that differ from a fresh run's, which lie in `.fresh`."""
    folders = {str(world.config["results"]).rpartition("/")[2]: True}
    folders |= {world.results(stage): False for stage in world.stages}
    for folder, is_root in folders.items():
        ours, fresh = world.folder / folder, world.folder / ".fresh" / folder
        for what in differences_of(ours, fresh, is_root=is_root):
            kind, _, name = what.partition(": ")
            if kind != "left over" or not _may_stay(fresh, Path(name)):
                yield f"{kind}: {folder}/{name}"


def _may_stay(fresh: Path, name: Path) -> bool:
    """Results of a step or bridge of which a fresh run makes nothing do no harm, as no reader takes them."""
    depth = {"bridge": 1, "by_checkpoint": 2}.get(name.parts[0], 0)
    return bool(depth) and not fresh.joinpath(*name.parts[:depth]).exists()


def differences_of(ours: Path, fresh: Path, *, is_root: bool = False) -> Iterator[str]:
    """Files of two folders of results that differ."""
    mine, theirs = _files(ours, is_root), _files(fresh, is_root)
    for name in sorted(mine.keys() | theirs.keys()):
        if name not in mine:
            yield f"missing: {name}"
        elif name not in theirs:
            yield f"left over: {name}"
        elif (what := _difference(mine[name], theirs[name])) is not None:
            yield f"differs: {name}: {what}"


def _files(folder: Path, is_root: bool) -> dict[str, Path]:
    found = folder.glob("*") if is_root else folder.rglob("*")
    files = (path for path in found if path.is_file() and not set(path.parts) & OWN)
    ended = (".log", ".tmp", ".damaged")
    return {str(path.relative_to(folder)): path for path in files if path.suffix not in ended}


def _difference(ours: Path, fresh: Path) -> str | None:
    if ours.read_bytes() == fresh.read_bytes():
        return None
    if ours.suffix == ".parquet":
        try:
            is_same = pq.read_table(ours).equals(pq.read_table(fresh))
        except (OSError, ValueError) as error:
            return f"not Parquet: {error}"
        return None if is_same else "other rows"
    for number, pair in enumerate(zip_longest(_lines(ours), _lines(fresh), fillvalue=""), 1):
        if pair[0] != pair[1]:
            same = takewhile(lambda letters: letters[0] == letters[1], zip(*pair, strict=False))
            start = max(0, len([*same]) - 40)
            line, other = (one[start : start + 100] for one in pair)
            return f"line {number} {line!r}, fresh {other!r}"
    return None


def _lines(path: Path) -> list[str]:
    """The text that counts; of JSON without times, one value in a line."""
    text = CODE.sub("", path.read_text(errors="replace"))
    if path.suffix == ".json":
        try:
            text = json.dumps(_timeless(json.loads(text)), indent=0, sort_keys=True)
        except ValueError as error:
            text = f"not JSON: {error}"
    return text.splitlines()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(own) for key, own in value.items() if key not in TIMES}
    return [_timeless(own) for own in value] if isinstance(value, list) else value


def scored(world: World) -> dict[tuple[str, int | None], str]:
    """Places of the checkpoints that the tables have, by stage and step; None: a bridge."""
    found: dict[tuple[str, int | None], str] = {}
    for stage in world.stages:
        path = world.folder / world.results(stage) / "summary.parquet"
        if path.exists():
            rows = pq.read_table(path, columns=["role", "step"]).to_pylist()
            steps = {row["step"] for row in rows if row["role"] == "step"}
            found |= {(stage, step): world.place(stage, step) for step in steps}
            if (place := world.bridge(stage)) and any(row["role"] == "bridge" for row in rows):
                found[stage, None] = place
    return found


LOGS = {".config", ".snakemake", "eval_logs", "logs", "counts.jsonl", "sources.json", "lock.json"}
SHOWN = ("report.html", "summary.csv")
"""Outputs of the report, which Snakemake touches at every call."""


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file that a run which does nothing must leave alone; a hash in place of the time
    of what Snakemake touches."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        is_log = set(name.parts) & LOGS or path.suffix == ".log" or path.name.startswith("shown-")
        if not is_log and (path.is_file() or path.is_symlink()):
            time = hash(path.read_bytes()) if name.name in SHOWN else path.lstat().st_mtime_ns
            found[str(name)] = (path.lstat().st_size, time)
    return found


def touched(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names of files that are new, deleted or changed."""
    names = before.keys() | after.keys()
    return sorted(name for name in names if before.get(name) != after.get(name))
