"""Files of datasets' local mirrors: where they are, and their rows.

`evaluation.prefill.mirrors` describes the layout of a mirror: `<config>/<split>….parquet`, or saved by
`save_to_disk`. A mirror that is one file is the split that its name says.
"""

import re
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.providers.adapters.refusals import RefusedTask

PACKED = (".gz", ".zst", ".zstd")
"""Endings of compressed files."""

_SUFFIXES = (".parquet", *(f"{kind}{p}" for kind in (".jsonl", ".json") for p in ("", *PACKED)))

_PART = re.compile(r"[-._]\d+-of-(\d+)(?=\.[^/]*$)")


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
    folder = _folder_of(root, name)
    if folder is None or _is_saved(folder):
        return [] if folder is None else [folder]
    return [*chain(*_data_files(folder).values())]


def places(root: Path, name: str | None) -> list[Path]:
    """Return the folders of a mirror that may hold a configuration, in the order of preference."""
    if root.is_file() or name not in (None, "default"):
        return [root if root.is_file() else root / str(name)]
    below = [path for path in root.iterdir() if path.is_dir() and path.name[0] != "."]
    return [root / "default", root, *(below if name is None and len(below) == 1 else [])]


def read_mirrors(mirrors: Mapping[str, str]) -> dict[str, Any]:
    """Make `datasets.load_dataset` read from mirrors from now on.

    Returns:
        The part of `info` on the datasets, filled as they are read: `datasets` and `read`.
    """
    import datasets

    from_hub = datasets.load_dataset
    record: dict[str, Any] = {"datasets": {}, "read": []}

    def load(path: str, name: str | None = None, *rest: Any, split: Any = None, **more: Any) -> Any:
        root = find_mirror(path, mirrors)
        record["datasets"][path] = "hub" if root is None else str(root)
        if not any((entry["dataset"], entry["config"]) == (path, name) for entry in record["read"]):
            parts = None if root is None else chain(*map(parts_of, mirrored_files(root, name)))
            files = parts and [(str(part), status_of(part)) for part in parts]
            record["read"].append({"dataset": path, "config": name, "files": files})
        if root is None:
            return from_hub(path, name, *rest, split=split, **more)
        splits = _splits(f"the mirror {root} of {path}", root, name, from_hub)
        return splits if split is None else splits[split]

    datasets.load_dataset = load
    return record


def _splits(mirror: str, root: Path, name: str | None, load: Callable[..., Any]) -> Any:
    """Return a mirror's splits as a mapping that raises RefusedTask for a missing one."""
    import datasets

    class MirrorSplits(datasets.DatasetDict):  # type: ignore[misc]
        def __missing__(self, split: str) -> Any:
            raise RefusedTask(f"{mirror} has no split {split!r}, only {', '.join(self)}; add it")

    if (folder := _folder_of(root, name)) is None:
        place = f"{places(root, name)[0]}/<split>.parquet"
        raise RefusedTask(f"{mirror} has no configuration {name!r}; put its splits at {place}")
    if _is_saved(folder):
        return MirrorSplits(datasets.load_from_disk(str(folder)))
    files = _data_files(folder)
    return MirrorSplits({split: _read(paths, load) for split, paths in files.items()})


def _read(paths: list[Path], load: Callable[..., Any]) -> Any:
    """Read all parts of a split, by `datasets` itself."""
    files = [str(path) for path in paths]
    totals = {found[1] if (found := _PART.search(file)) else "1" for file in files}
    if len(totals) > 1 or len(files) != int(totals.pop()):
        raise RefusedTask(f"{', '.join(files)} are not all parts of one copy; add or remove some")
    kind = "parquet" if paths[0].suffix == ".parquet" else "json"
    # In the program's own folder, as there may be no other that may be written.
    return load(kind, data_files=files, split="train", cache_dir="datasets")


def _folder_of(root: Path, name: str | None) -> Path | None:
    folders = places(root, name)
    return next((folder for folder in folders if _is_saved(folder) or _data_files(folder)), None)


def _is_saved(folder: Path) -> bool:
    return (folder / "dataset_dict.json").exists()


def _data_files(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each split, by their names."""
    files: dict[str, list[Path]] = {}
    inside = [folder] if folder.is_file() else sorted([*folder.glob("*"), *folder.glob("data/*")])
    for path in inside:
        if ending := next((suffix for suffix in _SUFFIXES if path.name.endswith(suffix)), None):
            split = _PART.sub("", path.name).removesuffix(ending)
            files.setdefault(split, []).append(path)
    return files
