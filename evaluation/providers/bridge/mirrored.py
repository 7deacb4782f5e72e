"""`datasets.load_dataset`, led to local folders where a dataset has a mirror.

A mirror is laid out as `evaluation.prefill.mirrors` says: `<config>/<split>….parquet`, or saved by
`save_to_disk`.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evaluation.providers.bridge.files import Refused

_KINDS = {".parquet": "parquet", ".jsonl": "json", ".json": "json"}


def lead_to(mirrors: Mapping[str, str], used: dict[str, str]) -> None:
    """From now on datasets come from `mirrors`; `used` gets each by the place that it came from."""
    import datasets

    from_hub = datasets.load_dataset

    def load(
        path: str,
        name: str | None = None,
        *arguments: Any,
        split: str | None = None,
        **options: Any,
    ) -> Any:
        root = _mirror(path, mirrors)
        used[path] = "hub" if root is None else str(root)
        if root is None:
            return _from_hub(from_hub, path, name, *arguments, split=split, **options)
        found = _splits(path, root, name)
        splits = _named(f"the mirror {root} of {path}", found)
        return splits if split is None else splits[split]

    datasets.load_dataset = load


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


def _splits(dataset: str, root: Path, name: str | None) -> dict[str, Any]:
    import datasets

    folders = [root / name] if name not in (None, "default") else [root / "default", root]
    if name is None:
        below = [path for path in root.iterdir() if path.is_dir() and path.name[0] != "."]
        folders += below if len(below) == 1 else []
    for folder in folders:
        if (folder / "dataset_dict.json").exists():
            return dict(datasets.load_from_disk(str(folder)))
        if found := _data_files(folder):
            return {split: _read(files) for split, files in found.items()}
    raise Refused(
        f"the mirror {root} of {dataset} has no configuration {name!r}; put its splits at "
        f"{folders[0]}/<split>.parquet"
    )


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
