"""The files of a dataset's split in a local mirror: those that define it, or a refusal that names files.

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

_PART = re.compile(r"[-._](\d+)-of-(\d+)(-[0-9a-f]{16})?$")
"""The number of a part, behind which `datasets` used to put a hash."""


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

    Without `config`, it is the default or only one; without the suite's `patterns`, names of files tell.
    """
    if root.is_file():
        return [root]
    places = _places(root, config)
    found = [_data_files(root, pattern.lstrip("/")) for pattern in patterns]
    files = [file for part in found for file in part] if all(found) else []
    if not patterns:
        files = next(filter(None, (_files_of(place, split) for place in places)), [])
    if files:
        check_parts(files, may_lack=bool(patterns))
        return files
    place = places[0] if config and places[0].is_dir() and not patterns else root
    wanted = f"split {split!r}" + (f" of configuration {config!r}" if config else "")
    raise SourceError(
        f"dataset {dataset}: its mirror {place} has no {f'data_files {patterns}' if patterns else wanted}; "
        f"{_what_is_there(place)}; put it at {places[0] / f'{split}.parquet'}, or name the files that are "
        "it (`data_files`)"
    )


def is_data_file(path: Path) -> bool:
    """Return whether a file is of a kind that is read, by its name."""
    return path.name.endswith(SUFFIXES) and not path.name.startswith(".") and path.is_file()


def check_parts(files: Iterable[Path], *, may_lack: bool = False) -> None:
    """Refuse files that may hold the same rows, or, unless they `may_lack` some, lack one of its shards."""
    groups: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    for path in files:
        groups[path.parent, _split_of(path)].append(path)
    for (folder, name), paths in groups.items():
        found = [_PART.search(_stem(path)) for path in paths]
        parts = {(int(part[1]), int(part[2])) for part in found if part}
        totals = {total for _, total in parts}
        if len(totals) > 1 or len(parts) < len(paths) > 1:
            raise SourceError(
                f"{folder}: {first_few([path.name for path in paths])} may hold the same rows twice; leave "
                "the files of one upload, or name them (`data_files`)"
            )
        if totals and len(parts) < max(totals) and not may_lack:
            raise SourceError(
                f"{folder / name}: only {len(parts)} of its {max(totals)} parts are there, "
                f"{first_few([path.name for path in paths])}; add the others, or name these (`data_files`)"
            )


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
    files = _data_files(folder, "*") or _data_files(folder, "data/*")
    named = [path for path in files if _split_of(path) == split]
    whole = [path for path in files if path not in named and not _PART.search(_stem(path))]
    within = _data_files(inside, "**/*")
    if named and (others := [*_naming(whole, re.escape(split)), *within]):
        raise SourceError(
            f"{folder}: the split {split!r} may be {named[0].name}, or {others[0].relative_to(folder)}, "
            "too, as on the hub; remove one, or name it (`data_files`)"
        )
    if within or named or split != "train" or _naming(files, "train|val(id(ation)?)?|dev|test"):
        return within or named
    return files  # as on the hub, where none names a split


def _naming(paths: Sequence[Path], splits: str) -> list[Path]:
    pattern = re.compile(rf"(^|[-._ ])({splits})([-._ \d]|$)")
    return [path for path in paths if pattern.search(_split_of(path))]


def _split_of(path: Path) -> str:
    """Return the name of a file without its ending and the number of its part: that of its split."""
    return _PART.sub("", _stem(path))


def _stem(path: Path) -> str:
    ending = next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), "")
    return path.name.removesuffix(ending)


def _data_files(folder: Path, pattern: str) -> list[Path]:
    return sorted(filter(is_data_file, folder.glob(pattern)))


def _what_is_there(folder: Path) -> str:
    found = [path for pattern in ("*", "data/*") for path in folder.glob(pattern)]
    names = sorted(path.relative_to(folder).as_posix() for path in found if path.name != "data")
    return f"there is {first_few(names, 12) or 'nothing'}"
