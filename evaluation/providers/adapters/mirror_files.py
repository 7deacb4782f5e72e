"""Files of datasets' local mirrors: where they are, and their rows.

`evaluation.prefill.mirrors` describes the layout of a mirror: `<config>/<split>….parquet`, or saved by
`save_to_disk`.
"""

import json
import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.providers.adapters.contract import RefusedTask

PACKED = (".gz", ".zst", ".zstd")
"""Endings of compressed files."""

_SUFFIXES = (".parquet", *(f"{kind}{p}" for kind in (".jsonl", ".json") for p in ("", *PACKED)))

_PART = re.compile(r"[-._]\d+-of-\d+$")

_LFS = b"version https://git-lfs.github.com/spec/"


class FileStamp(NamedTuple):
    """A file's bytes, its times of content change and status change (ns), and its inode.

    A copy that keeps size and time of content change differs in the other two.
    """

    size: int
    changed: int
    altered: int
    inode: int


def status_of(path: Path) -> FileStamp:
    """Return a file's size, times and inode, which differ after the file was changed."""
    status = path.stat()
    return FileStamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def parts_of(path: Path) -> list[Path]:
    """Return the file itself, or the files that `save_to_disk` wrote into a folder, in order.

    Caches of `datasets` are left out.
    """
    if not path.is_dir():
        return [path]
    paths = sorted(part for part in path.rglob("*") if part.is_file())
    return [part for part in paths if not part.name.startswith(("cache-", "."))]


def is_lfs_pointer(path: Path) -> bool:
    """Return whether a file is a pointer of Git LFS, which was not replaced by the file itself."""
    with open(path, "rb") as file:
        return file.read(len(_LFS)) == _LFS


def find_mirror(dataset: str, mirrors: Mapping[str, str]) -> Path | None:
    """Return the folder or file that mirrors a dataset; `*` in `mirrors` names one that holds any."""
    if dataset in mirrors:
        return Path(mirrors[dataset])
    if "*" in mirrors and (Path(mirrors["*"]) / dataset).exists():
        return Path(mirrors["*"]) / dataset
    return None


def mirrored_files(root: Path, name: str | None) -> list[Path]:
    """Return the files that are read from a mirror for a configuration; None is the default.

    They may be one folder that `save_to_disk` wrote; there are none where the mirror lacks it.
    """
    if root.is_file():
        return [root]
    folder = folder_of(root, name)
    if folder is None:
        return []
    return [folder] if is_saved(folder) else [*chain(*data_files(folder).values())]


def folder_of(root: Path, name: str | None) -> Path | None:
    """Return a mirror's folder of a configuration; None if it has none."""
    folders = places(root, name)
    return next((folder for folder in folders if is_saved(folder) or data_files(folder)), None)


def places(root: Path, name: str | None) -> list[Path]:
    """Return the folders of a mirror that may hold a configuration, in the order of preference."""
    if name not in (None, "default"):
        return [root / name]
    below = [path for path in root.iterdir() if path.is_dir() and path.name[0] != "."]
    return [root / "default", root, *(below if name is None and len(below) == 1 else [])]


def is_saved(folder: Path) -> bool:
    return (folder / "dataset_dict.json").exists()


def data_files(folder: Path) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for place in (folder, folder / "data"):
        for path in sorted(place.iterdir()) if place.is_dir() else []:
            if ending := next((suffix for suffix in _SUFFIXES if path.name.endswith(suffix)), None):
                split = _PART.sub("", path.name.removesuffix(ending))
                files.setdefault(split, []).append(path)
    return files


def read_files(files: list[Path]) -> Any:
    """Read files into memory, as `datasets` might have no folder for its cache."""
    import datasets
    import pyarrow as pa
    import pyarrow.parquet

    for path in files:
        if is_lfs_pointer(path):
            raise RefusedTask(
                f"{path} is a pointer of Git LFS, not the file itself; run `git lfs pull`"
            )
    tables = [
        pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else _read_json(path)
        for path in files
    ]
    return datasets.Dataset(pa.concat_tables(tables))


def _read_json(path: Path) -> Any:
    """Read JSON lines, or one JSON array, compressed or not."""
    import pyarrow as pa
    import pyarrow.json

    with pa.input_stream(str(path), compression="detect") as file:
        begin = file.read(64).lstrip()
    with pa.input_stream(str(path), compression="detect") as file:
        if ".jsonl" not in path.name and begin.startswith(b"["):
            return pa.Table.from_pylist(json.loads(file.read()))
        return pyarrow.json.read_json(file)
