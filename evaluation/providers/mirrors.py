"""The files of a dataset's split in a local mirror: those that `datasets` would take, or a refusal.

A mirror is one file, a folder of `save_to_disk`, or a folder laid out like a repository of the hub:

    <config>/<split>.parquet           <config>/<split>-00000-of-00003.parquet
    <config>/data/<split>.jsonl.gz     <config>/<split>/…      (files, or `save_to_disk`)

Without a configuration, `default/` is taken, else the folder itself, else its only folder. Programs of
providers import this, too, so it needs the standard library alone.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from evaluation.errors import SourceError, first_few

SUFFIXES = (
    ".parquet",
    *(f"{kind}{packed}" for kind in (".jsonl", ".json", ".txt") for packed in ("", ".gz", ".zst")),
)
"""Endings of the files that are read."""

_PART = re.compile(r"[-._](\d+)-of-(\d+)$")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
"""A file of this name defines a split exactly, on the hub as here."""

_SPLITS = ("train", "validation", "valid", "val", "dev", "test")


def find_mirror(dataset: str, mirrors: Mapping[str, str]) -> Path | None:
    """Return the folder or file that mirrors a dataset; `*` in `mirrors` names one that holds any."""
    if dataset in mirrors:
        if (named := Path(mirrors[dataset])).exists():
            return named
        raise SourceError(f"mirrors.{dataset}: {named} does not exist; correct the path")
    if "*" not in mirrors:
        return None
    if not (root := Path(mirrors["*"])).is_dir():
        raise SourceError(f"mirrors.*: {root} is not a folder; correct the path")
    return root / dataset if (root / dataset).exists() else None


def split_files(
    root: Path, dataset: str, config: str | None, split: str, patterns: Sequence[str] = ()
) -> list[Path]:
    """Return the files of a split in order, or the one folder that `save_to_disk` wrote.

    Args:
        root: The mirror.
        config: The dataset's configuration; None: the default or only one.
        patterns: The suite's patterns for the split's files; empty: names of files tell.
    """
    if root.is_file():
        return [root]
    if patterns:
        return _by_patterns(root, dataset, patterns)
    places = _places(root, config)
    for folder in places:
        if files := _files_of(folder, split):
            check_parts(files)
            return files
    wanted = f"split {split!r}" + (f" of configuration {config!r}" if config else "")
    place = places[0] if config and places[0].is_dir() else root
    raise SourceError(
        f"dataset {dataset}: its mirror {place} has no {wanted}; {_what_is_there(place)}; "
        f"put it at {places[0] / f'{split}.parquet'}, or name one that is there"
    )


def is_data_file(path: Path) -> bool:
    """Return whether a file is of a kind that is read, by its name."""
    return path.name.endswith(SUFFIXES) and not path.name.startswith(".") and path.is_file()


def parts_of(path: Path) -> list[Path]:
    """Return a file itself, or the files that `save_to_disk` wrote into a folder, without caches."""
    if not path.is_dir():
        return [path]
    parts = sorted(part for part in path.rglob("*") if part.is_file())
    return [part for part in parts if not part.name.startswith(("cache-", "."))]


def check_parts(files: Iterable[Path], *, may_lack: bool = False) -> None:
    """Refuse files that may hold the same rows, such as the shards of two uploads, or lack a shard.

    Args:
        may_lack: Whether shards may be missing, as where the files are named one by one.
    """
    groups: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    for path in files:
        groups[path.parent, _PART.sub("", _stem(path))].append(path)
    for (folder, name), paths in groups.items():
        found = [_PART.search(_stem(path)) for path in paths]
        parts = [(int(name[1]), int(name[2])) for name in found if name]
        totals = {total for _, total in parts}
        if len(totals) > 1 or len(set(parts)) < len(paths) > 1:
            raise SourceError(
                f"{folder}: {first_few([path.name for path in paths])} may hold the same rows twice; leave "
                "the files of one upload, or name them (`data_files`)"
            )
        there = {number for number, _ in parts}
        first = min(there, default=0) if min(there, default=0) <= 1 else 0
        lacking = [n for total in totals for n in range(first, first + total) if n not in there]
        if lacking and not may_lack:
            raise SourceError(
                f"{folder / name}: {len(there)} of its {max(totals)} parts are there, and not "
                f"{first_few([str(n) for n in lacking])}; add them, or name those to read (`data_files`)"
            )


def _by_patterns(root: Path, dataset: str, patterns: Sequence[str]) -> list[Path]:
    """Return files at the places that they have on the hub."""
    paths: list[Path] = []
    for pattern in patterns:
        files = _data_files(root, pattern.lstrip("/"))
        if not files:
            raise SourceError(
                f"dataset {dataset}: nothing in its mirror {root} matches data_files {pattern!r}; "
                f"{_what_is_there(root)}; add the files, or correct the pattern"
            )
        paths += files
    check_parts(paths, may_lack=True)
    return paths


def _places(root: Path, config: str | None) -> list[Path]:
    """Return the folders of a mirror that may hold a configuration, in the order of preference."""
    if config not in (None, "default"):
        return [root / str(config)]
    below = [path for path in root.iterdir() if path.is_dir() and path.name[0] != "."]
    return [root / "default", root, *(below if config is None and len(below) == 1 else [])]


def _files_of(folder: Path, split: str) -> list[Path]:
    inside = folder / split
    for saved in (folder, inside):
        if (saved / "state.json").is_file():  # `save_to_disk` wrote one split here
            return [saved]
    within = _data_files(inside, "**/*")
    files = _data_files(folder, "*") or _data_files(folder, "data/*")
    named = _named(folder, files, split)
    if within and named:
        raise SourceError(
            f"{folder}: the split {split!r} may be {named[0].name} or the folder {inside.name}; remove one"
        )
    return within or named


def _named(folder: Path, files: list[Path], split: str) -> list[Path]:
    """Return the files whose names are those of a split; raise SourceError if several splits' are."""
    stems = {path: _PART.sub("", _stem(path)) for path in files}
    exact = {_SHARD.sub("", _stem(path)) for path in files if _SHARD.search(_stem(path))}
    exact.discard(split)
    named = {p: s for p, s in stems.items() if s == split or (s not in exact and _names(s, split))}
    if len({re.sub(r"[-._ ]?\d+$", "", stem) for stem in named.values()}) > 1:
        names = first_few([path.name for path in named])
        raise SourceError(
            f"{folder}: it is not clear which of {names} are the split {split!r}; name them (`data_files`)"
        )
    # As on the hub, files that name no split at all are the training split.
    is_unnamed = not any(_names(stem, name) for stem in stems.values() for name in _SPLITS)
    return files if split == "train" and is_unnamed else list(named)


def _names(stem: str, split: str) -> bool:
    return re.search(rf"(?:^|[-._ ]){re.escape(split)}(?:[-._ \d]|$)", stem) is not None


def _stem(path: Path) -> str:
    ending = next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), "")
    return path.name.removesuffix(ending)


def _data_files(folder: Path, pattern: str) -> list[Path]:
    return sorted(filter(is_data_file, folder.glob(pattern)))


def _what_is_there(folder: Path) -> str:
    if not folder.is_dir():
        return "there is no such folder"
    paths = [*folder.glob("data/*"), *(path for path in folder.iterdir() if path.name != "data")]
    names = sorted(path.relative_to(folder).as_posix() for path in paths)
    return f"there is {first_few(names, 12) or 'nothing'}"
