"""The local files of a dataset's split: in a mirror, or as a suite names them.

A mirror is a single file, a `save_to_disk` folder, or a folder laid out like a repository of the
hub, in which a configuration is a folder and a split is a folder, or files with its name:

    <config>/<split>.parquet           <config>/<split>-00000-of-00003.parquet
    <config>/<split>/…                 <config>/<split>/state.json   (save_to_disk)
    <split>.jsonl                      <config>/dataset_dict.json    (save_to_disk)

Without a configuration, `default/` is taken, else the folder itself, else its only folder.
"""

import glob
import logging
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from evaluation.errors import SourceError, first_few
from evaluation.prefill.files import SUFFIXES
from evaluation.providers.adapters.mirror_files import find_mirror, places

log = logging.getLogger(__name__)

_PART = re.compile(r"[-._](\d+)-of-(\d+)")
_SPLITS = ("train", "validation", "valid", "val", "dev", "test")


def mirror_of(dataset: str, mirrors: dict[str, str]) -> Path | None:
    """Return the folder or file that mirrors a dataset; None if it is not mirrored.

    Raises:
        SourceError: The configured folder does not exist.
    """
    named, root = mirrors.get(dataset), mirrors.get("*")
    if named is not None and not Path(named).exists():
        raise SourceError(f"mirrors.{dataset}: {Path(named)} does not exist; correct the path")
    if named is None and root is not None and not Path(root).is_dir():
        raise SourceError(f"mirrors.*: {Path(root)} is not a folder; correct the path")
    return find_mirror(dataset, mirrors)


def mirror_files(
    root: Path, *, dataset: str, config: str | None, split: str, patterns: Sequence[str] = ()
) -> list[Path]:
    """Return the local files of a dataset's split, or the one folder of `save_to_disk`.

    Args:
        config: The dataset's configuration, a subfolder; None: it has only one.
        patterns: The suite's patterns for the split's files; empty: files are found by their names.

    Raises:
        SourceError: There are none, or they are of a format that is not read.
    """
    if not root.is_dir():
        return [root]
    if patterns:
        return _by_patterns(root, dataset, patterns)
    candidates = places(root, config)
    for folder in candidates:
        files = _split_files(folder, split) if folder.is_dir() else []
        if files:
            _check_formats(files, dataset, split)
            return files
    wanted = f"split {split!r}" + (f" of configuration {config!r}" if config else "")
    place = candidates[0] if config is not None and candidates[0].is_dir() else root
    raise SourceError(
        f"dataset {dataset}: its mirror {place} has no {wanted}; {_what_is_there(place)}; "
        f"put it at {candidates[0] / f'{split}.parquet'}, or name one that is there"
    )


def _check_formats(files: Sequence[Path], dataset: str, split: str) -> None:
    """Raise SourceError where a split has files in two formats, perhaps of the same rows."""
    formats = {f".{s.split('.')[1]}" for f in files for s in SUFFIXES if f.name.endswith(s)}
    if len(formats) > 1:
        raise SourceError(
            f"dataset {dataset}: its mirror {files[0].parent} has the split {split!r} as "
            f"{' and as '.join(sorted(formats))}; leave one of them, or name the files (`data_files`)"
        )


def warn_of_missing_parts(files: Iterable[Path]) -> None:
    """Log a warning for each split that lacks some of its numbered parts."""
    numbers_of: dict[tuple[str, int], set[int]] = {}
    for path in files:
        if match := _PART.search(path.name):
            key = f"{path.parent}/{path.name[: match.start()]}", int(match.group(2))
            numbers_of.setdefault(key, set()).add(int(match.group(1)))
    for (name, total), parts in numbers_of.items():
        if len(parts) < total:
            there = f"{len(parts)} of its {total} parts are there"
            log.warning("%s: %s; the others are not read", name, there)


def _by_patterns(root: Path, dataset: str, patterns: Sequence[str]) -> list[Path]:
    """Return files at the places they have on the hub; raises SourceError for a pattern without any.

    No other layout is tried: it could find files of the split that the patterns leave out.
    """
    paths: list[Path] = []
    for pattern in patterns:
        try:
            files = sorted(path for path in root.glob(pattern) if _is_data_file(path))
        except (NotImplementedError, ValueError) as error:
            raise SourceError(f"dataset {dataset}: data_files {pattern!r}: {error}") from None
        if not files:
            raise SourceError(
                f"dataset {dataset}: nothing in its mirror {root} matches data_files {pattern!r}; "
                f"{_what_is_there(root)}; add the files, or correct the pattern"
            )
        paths += files
    return paths


def _is_data_file(path: Path) -> bool:
    return path.is_file() and path.name.endswith(SUFFIXES) and not path.name.startswith(".")


def _is_saved(folder: Path) -> bool:
    """Return whether a folder was written by `save_to_disk` of one split."""
    return (folder / "state.json").is_file()


def _split_files(folder: Path, split: str) -> list[Path]:
    if (folder / "dataset_dict.json").is_file():
        return [folder / split] if _is_saved(folder / split) else []
    if _is_saved(folder):
        return [folder]
    inside = folder / split
    if _is_saved(inside):
        return [inside]
    if inside.is_dir():
        return sorted(path for path in inside.rglob("*") if _is_data_file(path))
    files = _data_files(folder) or _data_files(folder / "data")
    named = [path for path in files if _names_split(path.name, split)]
    if named or split != "train":
        return named
    # As on the hub, files that name no split at all are the training split.
    return [] if any(_names_split(path.name, s) for path in files for s in _SPLITS) else files


def _data_files(folder: Path) -> list[Path]:
    return sorted(filter(_is_data_file, folder.iterdir())) if folder.is_dir() else []


def _names_split(name: str, split: str) -> bool:
    return re.search(rf"(?:^|[-._ ]){re.escape(split)}(?:[-._ \d]|$)", name) is not None


def _what_is_there(folder: Path) -> str:
    if not folder.is_dir():
        return "there is no such folder"
    names = sorted(path.name for path in folder.iterdir())
    return f"there is {first_few(names, 12) or 'nothing'}"


def local_files(patterns: Sequence[str], folders: Sequence[str]) -> list[Path]:
    """Return the files that paths and patterns name, in the order of these, each pattern's sorted.

    Args:
        folders: Folders to look in before the working folder, for relative ones.

    Raises:
        SourceError: A pattern names nothing, or something other than a data file.
    """
    files: list[Path] = []
    for pattern in patterns:
        for path in _matches(pattern, folders):
            if path.is_dir():
                files += mirror_files(path, dataset=str(path), config=None, split="train")
            elif _is_data_file(path):
                files.append(path)
            else:
                raise SourceError(
                    f"files: {path} is not Parquet, JSON(L) or text by its name; convert it, or "
                    "give it the suffix of what it is (.parquet, .jsonl, .json, .txt)"
                )
    _check_distinct(files)
    return files


def _matches(pattern: str, folders: Sequence[str]) -> list[Path]:
    """Return what a pattern names in the first folder where it names anything."""
    places = [pattern] if os.path.isabs(pattern) else [f"{folder}/{pattern}" for folder in folders]
    places = list(dict.fromkeys([*places, pattern]))
    for place in places:
        if paths := sorted(glob.glob(place, recursive=True)):
            return [Path(path) for path in paths]
    looked = [os.path.abspath(place) for place in places] if len(places) > 1 else places
    raise SourceError(f"files: nothing is at {' or at '.join(looked)}; correct the path")


def _check_distinct(files: Sequence[Path]) -> None:
    """Raise SourceError for a file that would be read twice, by whatever path."""
    seen: dict[str, Path] = {}
    for path in files:
        first = seen.setdefault(os.path.realpath(path), path)
        if first is not path:
            other = "" if first == path else f" as {first}"
            raise SourceError(f"files: {path} is named twice{other}; name each file once")
