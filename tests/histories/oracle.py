"""What a history leaves, compared with what a fresh run leaves."""

import json
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from evaluation.runs.find import run_folders
from evaluation.settings.steps import step_of_results
from tests.histories.model import Model

TIMES = {"seconds", "tokens_per_second", "tokens_processed", "made", "started", "run"}
"""Keys of JSON that say when something was made, how fast, and in which batch."""

OWN = {".config", ".made", ".snakemake", "scores", "eval_logs"}
"""Folders of the workflow itself: no results, or packed as the jobs happened to run."""

CODE = re.compile(r"<dt>code</dt> <dd>[^<]*</dd>")
"""Which commit wrote a page; somebody may commit while a history is played."""


def differences(model: Model, ours: Path, fresh: Path) -> Iterator[str]:
    """Files that differ, by what a fresh run has; `ours` and `fresh` hold folders of results."""
    for folder, is_root in _folders(model):
        for what in differences_of(ours / folder, fresh / folder, is_root=is_root):
            kind, _, name = what.partition(": ")
            if kind != "left over" or not _may_stay(model, folder, name):
                yield f"{kind}: {folder}/{name}"


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


def _folders(model: Model) -> Iterator[tuple[str, bool]]:
    """Each folder of results, and whether it is the one above the stages."""
    yield str(model.config["results"]).rpartition("/")[2], True
    for stage in model.stages:
        yield model.results(stage), False


def _files(folder: Path, is_root: bool) -> dict[str, Path]:
    found = folder.glob("*") if is_root else folder.rglob("*")
    files = (path for path in found if path.is_file() and not set(path.parts) & OWN)
    ended = (".log", ".tmp", ".damaged")
    return {str(path.relative_to(folder)): path for path in files if path.suffix not in ended}


def unasked(model: Model, folder: Path) -> Iterator[str]:
    """Results of steps that are not requested, but that a reader of a stage's folder takes."""
    for stage in model.stages:
        results = folder / model.results(stage)
        for taken in run_folders(results).values():
            for step in sorted({*map(step_of_results, taken)} - {*model.steps(stage)}):
                yield f"left over and taken: step {step} of {stage}"


def _may_stay(model: Model, folder: str, name: str) -> bool:
    """Results of a step or bridge that nobody requests do no harm, as no reader takes them (`unasked`)."""
    stage = next((one for one in model.stages if model.results(one) == folder), None)
    top, _, rest = name.partition("/")
    if stage is None or top not in ("bridge", "by_checkpoint"):
        return False
    if top == "bridge":
        return model.bridge(stage) is None
    return step_of_results(Path(rest.partition("/")[0])) not in model.steps(stage)


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
            differs = (
                i for i, letters in enumerate(zip(*pair, strict=False)) if len({*letters}) > 1
            )
            start = max(0, next(differs, 0) - 40)
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
