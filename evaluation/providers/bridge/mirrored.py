"""`datasets.load_dataset`, led to local folders where a dataset has a mirror.

A mirror is laid out as `evaluation.prefill.mirrors` says: `<config>/<split>….parquet`, or saved by
`save_to_disk`.
"""

import re
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from evaluation.providers.bridge.files import Line, Refused
from evaluation.providers.bridge.statuses import Status, parts_of, status_of

_KINDS = {".parquet": "parquet", ".jsonl": "json", ".json": "json"}


def lead_to(mirrors: Mapping[str, str]) -> Line:
    """From now on datasets come from `mirrors`.

    Returns what meta.json says of them, filled as they are read: `datasets`, where each came from, and
    `read`, what the file system told of its files before.
    """
    import datasets

    from_hub = datasets.load_dataset
    told: Line = {"datasets": {}, "read": []}

    def load(
        path: str,
        name: str | None = None,
        *arguments: Any,
        split: str | None = None,
        **options: Any,
    ) -> Any:
        root = _mirror(path, mirrors)
        told["datasets"][path] = "hub" if root is None else str(root)
        if not any((one["dataset"], one["config"]) == (path, name) for one in told["read"]):
            told["read"].append({"dataset": path, "config": name, "files": _before(root, name)})
        if root is None:
            return _from_hub(from_hub, path, name, *arguments, split=split, **options)
        found = _splits(path, root, name)
        splits = _named(f"the mirror {root} of {path}", found)
        return splits if split is None else splits[split]

    datasets.load_dataset = load
    return told


def _before(root: Path | None, name: str | None) -> list[tuple[str, Status]] | None:
    if root is None:
        return None
    parts = chain.from_iterable(map(parts_of, mirrored_files(root, name)))
    return [(str(part), status_of(part)) for part in parts]


def _from_hub(
    load: Callable[..., Any], path: str, name: str | None, *rest: Any, **more: Any
) -> Any:
    try:
        return load(path, name, *rest, **more)
    except Exception as error:  # noqa: BLE001 - the hub's client raises what it likes
        reason = " ".join(str(error).split())[:300]
        raise Refused(
            f"the dataset {path} cannot be loaded ({type(error).__name__}: {reason}); run this "
            "with internet access, or name a local copy under `mirrors`"
        ) from None


def _mirror(dataset: str, mirrors: Mapping[str, str]) -> Path | None:
    if dataset in mirrors:
        return Path(mirrors[dataset])
    if "*" in mirrors and (Path(mirrors["*"]) / dataset).exists():
        return Path(mirrors["*"]) / dataset
    return None


def _named(mirror: str, found: Mapping[str, Any]) -> Any:
    """The splits; raises Refused for one that is not there."""
    import datasets

    class Splits(datasets.DatasetDict):  # type: ignore[misc]
        def __getitem__(self, split: str) -> Any:
            if split not in self:
                there = ", ".join(self)
                raise Refused(f"{mirror} has no split {split!r}, only {there}; add it")
            return super().__getitem__(split)

    return Splits(found)


def mirrored_files(root: Path, name: str | None) -> list[Path]:
    """What is read of a mirror for a configuration: files, or a folder that `save_to_disk` wrote."""
    folder = _folder(root, name)
    if folder is None:
        return []
    return [folder] if _is_saved(folder) else [*chain(*_data_files(folder).values())]


def _folder(root: Path, name: str | None) -> Path | None:
    """Where a mirror has a configuration; None where it does not."""
    folders = _places(root, name)
    return next((one for one in folders if _is_saved(one) or _data_files(one)), None)


def _places(root: Path, name: str | None) -> list[Path]:
    if name not in (None, "default"):
        return [root / name]
    below = [path for path in root.iterdir() if path.is_dir() and path.name[0] != "."]
    return [root / "default", root, *(below if name is None and len(below) == 1 else [])]


def _is_saved(folder: Path) -> bool:
    return (folder / "dataset_dict.json").exists()


def _splits(dataset: str, root: Path, name: str | None) -> dict[str, Any]:
    import datasets

    folder = _folder(root, name)
    if folder is None:
        raise Refused(
            f"the mirror {root} of {dataset} has no configuration {name!r}; put its splits at "
            f"{_places(root, name)[0]}/<split>.parquet"
        )
    if _is_saved(folder):
        return dict(datasets.load_from_disk(str(folder)))
    return {split: _read(files) for split, files in _data_files(folder).items()}


def _data_files(folder: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for place in (folder, folder / "data"):
        for path in sorted(place.iterdir()) if place.is_dir() else []:
            if path.suffix in _KINDS:
                split = re.sub(r"-\d{5}-of-\d{5}$", "", path.stem)
                found.setdefault(split, []).append(path)
    return found


def _read(files: list[Path]) -> Any:
    """In memory, so that nothing is put into a cache that may not be there."""
    import datasets
    import pyarrow as pa
    import pyarrow.json
    import pyarrow.parquet

    read = pyarrow.parquet.read_table if files[0].suffix == ".parquet" else pyarrow.json.read_json
    return datasets.Dataset(pa.concat_tables([read(path) for path in files]))
