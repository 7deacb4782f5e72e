"""What a history leaves, beside what a fresh run leaves."""

import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.histories.model import Model

TIMES = {"seconds", "tokens_per_second", "tokens_processed", "made", "started", "run"}
"""Keys of JSON that say when something was made, how fast, and with what beside it."""

OWN = {".config", ".made", ".snakemake", "scores", "eval_logs"}
"""Folders of the workflow itself: no results, or packed as the jobs happened to run."""


CODE = re.compile(r"<dt>code</dt> <dd>[^<]*</dd>")
"""Which commit wrote a page; somebody may commit while a history is played."""


def is_result(path: Path) -> bool:
    return not (set(path.parts) & OWN or path.suffix in (".log", ".tmp", ".damaged"))


def differences(model: Model, ours: Path, fresh: Path) -> Iterator[str]:
    """Files that differ, by what a fresh run has; `ours` and `fresh` hold folders of results."""
    for folder, is_root in _folders(model):
        mine, theirs = _files(ours / folder, is_root), _files(fresh / folder, is_root)
        for name in sorted(theirs.keys() - mine.keys()):
            yield f"missing: {folder}/{name}"
        for name in sorted(mine.keys() - theirs.keys()):
            if not _may_stay(model, folder, name):
                yield f"left over: {folder}/{name}"
        for name in sorted(mine.keys() & theirs.keys()):
            if (what := _difference(mine[name], theirs[name])) is not None:
                yield f"differs: {folder}/{name}: {what}"


def differences_of(ours: Path, fresh: Path) -> Iterator[str]:
    """Files of two folders of results that differ."""
    mine, theirs = _files(ours, is_root=False), _files(fresh, is_root=False)
    yield from sorted(mine.keys() ^ theirs.keys())
    for name in sorted(mine.keys() & theirs.keys()):
        if (what := _difference(mine[name], theirs[name])) is not None:
            yield f"{name}: {what}"


def _folders(model: Model) -> Iterator[tuple[str, bool]]:
    """Each folder of results, and whether it is the one above the stages."""
    yield str(model.config["results"]).rpartition("/")[2], True
    for stage in model.stages:
        yield model.results(stage), False


def _files(folder: Path, is_root: bool) -> dict[str, Path]:
    found = folder.glob("*") if is_root else folder.rglob("*")
    files = [path for path in found if path.is_file() and is_result(path)]
    return {str(path.relative_to(folder)): path for path in files}


def _may_stay(model: Model, folder: str, name: str) -> bool:
    """Results of a step or bridge that is asked for no more do no harm."""
    stage = next((one for one in model.stages if model.results(one) == folder), None)
    if stage is None:
        return False
    parts = name.split("/")
    if parts[0] == "bridge":
        return model.bridge(stage) is None
    return parts[0] == "by_checkpoint" and int(parts[1].removeprefix("step_")) not in model.steps(
        stage
    )


def _difference(ours: Path, fresh: Path) -> str | None:
    if ours.read_bytes() == fresh.read_bytes():
        return None
    if ours.suffix == ".parquet":
        return _tables(ours, fresh)
    if ours.suffix == ".json":
        return _values(_json(ours), _json(fresh), "")
    return _lines(ours, fresh)


def _tables(ours: Path, fresh: Path) -> str | None:
    try:
        mine = pq.read_table(ours)
    except (OSError, ValueError) as error:
        return f"not Parquet: {error}"
    theirs = pq.read_table(fresh)
    return None if mine.equals(theirs) else f"{mine.num_rows} and {theirs.num_rows} rows"


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        return f"not JSON: {error}"


def _values(ours: Any, fresh: Any, where: str) -> str | None:
    """The first value that differs, and where it is."""
    if isinstance(ours, dict) and isinstance(fresh, dict):
        for key in sorted((ours.keys() | fresh.keys()) - TIMES):
            found = _values(ours.get(key), fresh.get(key), f"{where}.{key}")
            if found:
                return found
        return None
    if isinstance(ours, list) and isinstance(fresh, list) and len(ours) == len(fresh):
        for place, pair in enumerate(zip(ours, fresh, strict=True)):
            found = _values(*pair, f"{where}.{place}")
            if found:
                return found
        return None
    return None if ours == fresh else f"{where} {str(ours)[:80]!r}, fresh {str(fresh)[:80]!r}"


def _lines(ours: Path, fresh: Path) -> str | None:
    mine, theirs = (
        CODE.sub("", path.read_text(errors="replace")).splitlines() for path in (ours, fresh)
    )
    if mine == theirs:
        return None
    for number, (line, other) in enumerate(zip(mine, theirs, strict=False), 1):
        if line != other:
            start = next(
                (i for i, pair in enumerate(zip(line, other, strict=False)) if len({*pair}) > 1), 0
            )
            start = max(0, start - 20)
            return (
                f"line {number} {line[start : start + 80]!r}, fresh {other[start : start + 80]!r}"
            )
    return f"{len(mine)} and {len(theirs)} lines"


def scored_steps(model: Model, folder: Path) -> set[tuple[str, int]]:
    """Stages and steps that the tables have."""
    found: set[tuple[str, int]] = set()
    for stage in model.stages:
        path = folder / model.results(stage) / "summary.parquet"
        if path.exists():
            rows = pq.read_table(path, columns=["role", "step"]).to_pylist()
            found |= {(stage, row["step"]) for row in rows if row["role"] == "step"}
    return found


def kept(model: Model, folder: Path) -> set[str]:
    """Places of deleted checkpoints whose results a stage without a list of steps has kept."""
    there = scored_steps(model, folder)
    every = {pair for pair in there if not isinstance(model.stages[pair[0]]["steps"], list)}
    return {model.place(*pair) for pair in every} & model.gone.keys()


def contents(folder: Path, model: Model) -> dict[str, bytes]:
    """Every file of results and its bytes, by its path."""
    found = {}
    for name, is_root in _folders(model):
        for path in _files(folder / name, is_root).values():
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def changed(before: dict[str, bytes], folder: Path, names: Iterable[str]) -> Iterator[str]:
    """Which of these files are something else by now, and in what."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            old, new = Path(scratch, Path(name).name), folder / name
            old.write_bytes(before[name])
            if not new.exists():
                yield f"{name}: gone"
            elif (what := _difference(old, new)) is not None:
                yield f"{name}: {what}"


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file that a run which does nothing must leave alone."""
    files = (path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in files
        if not _is_log(path.relative_to(folder))
    }


def _is_log(path: Path) -> bool:
    hidden = {".config", ".snakemake", "eval_logs", "logs", "counts.jsonl", "sources.json"}
    return bool(set(path.parts) & hidden) or path.suffix == ".log"
