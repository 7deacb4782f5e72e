"""Local mirrors of the datasets that tasks read, and whether the hub has the others.

`prefill`, too, finds out here what a provider would read now. `evaluation.prefill.mirrors` describes
the layout of a mirror: `<config>/<split>….parquet`, or saved by `save_to_disk`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.providers.adapters.contract import Line, Refused, one_line

_SECONDS = 10.0
"""Time to wait for the hub's answer."""

_SUFFIXES = (".parquet", ".jsonl", ".json")


class Status(NamedTuple):
    """A file's bytes, its times of content change and status change (ns), and its inode.

    A copy that keeps size and time of content change differs in the other two.
    """

    size: int
    changed: int
    altered: int
    inode: int


def status_of(path: Path) -> Status:
    """Return a file's status, which differs after the file was changed.

    Args:
        path: An existing file.

    Returns:
        Its size, times and inode.
    """
    found = path.stat()
    return Status(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def parts_of(path: Path) -> list[Path]:
    """Return the files of a dataset on disk.

    Args:
        path: A file, or a folder that `save_to_disk` wrote.

    Returns:
        The file itself, or the folder's files without caches of `datasets`, in order.
    """
    if not path.is_dir():
        return [path]
    found = sorted(part for part in path.rglob("*") if part.is_file())
    return [part for part in found if not part.name.startswith(("cache-", "."))]


def read_mirrors(mirrors: Mapping[str, str]) -> Line:
    """Make `datasets.load_dataset` read from mirrors from now on.

    Args:
        mirrors: Folders by dataset; `*` names one that holds any.

    Returns:
        The part of meta.json on the datasets, filled as they are read: `datasets`, where each came
        from, and `read`, the status of its files before.
    """
    import datasets

    from_hub = datasets.load_dataset
    record: Line = {"datasets": {}, "read": []}

    def load(
        path: str,
        name: str | None = None,
        *arguments: Any,
        split: str | None = None,
        **options: Any,
    ) -> Any:
        root = find_mirror(path, mirrors)
        record["datasets"][path] = "hub" if root is None else str(root)
        if not any((one["dataset"], one["config"]) == (path, name) for one in record["read"]):
            record["read"].append({"dataset": path, "config": name, "files": _before(root, name)})
        if root is None:
            return _from_hub(from_hub, path, name, *arguments, split=split, **options)
        found = _splits(path, root, name)
        splits = _named(f"the mirror {root} of {path}", found)
        return splits if split is None else splits[split]

    datasets.load_dataset = load
    return record


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
        raise Refused(
            f"the dataset {path} cannot be loaded ({type(error).__name__}: {one_line(error)}); run this "
            "with internet access, or name a local copy under `mirrors`"
        ) from None


def find_mirror(dataset: str, mirrors: Mapping[str, str]) -> Path | None:
    """Return where a dataset is mirrored.

    Args:
        dataset: Id of the dataset on the hub.
        mirrors: Folders by dataset; `*` names one that holds any.

    Returns:
        The folder or file; None without a mirror.
    """
    if dataset in mirrors:
        return Path(mirrors[dataset])
    if "*" in mirrors and (Path(mirrors["*"]) / dataset).exists():
        return Path(mirrors["*"]) / dataset
    return None


def check_tasks(
    request: Line, absent: Callable[[Line], Iterable[str]], how: str = "name local copies"
) -> None:
    """Refuse all unsupported tasks and all unavailable data of a request, in one sentence.

    Args:
        request: `tasks` and `mirrors`, as the contract describes them.
        absent: Returns the datasets that a task reads without a mirror; raises Refused.
        how: A remedy for a user without internet access.

    Raises:
        Refused: There are such tasks or data.
    """
    problems: list[str] = []
    without: dict[str, None] = {}
    for asked in request["tasks"]:
        try:
            without |= dict.fromkeys(absent({**asked, "mirrors": request["mirrors"]}))
        except Refused as error:
            problems.append(str(error))
    if lacking := _unreachable(list(without)):
        problems.append(
            f"the hub cannot be reached, and these datasets have no mirror: {', '.join(lacking)}; run this "
            f"with internet access, or {how} under `mirrors`"
        )
    if problems:
        raise Refused("; ".join(problems))


def _unreachable(names: list[str]) -> list[str]:
    """Return the datasets that no cache has, if the hub does not answer."""
    from datasets import config
    from datasets.naming import camelcase_to_snakecase
    from huggingface_hub import HfApi, constants

    try:
        for name in names[:1]:
            HfApi().dataset_info(name, timeout=_SECONDS)
    except Exception as error:  # noqa: BLE001 - the hub's client raises what it likes
        if getattr(error, "response", None) is None:
            hub, made = Path(constants.HF_HUB_CACHE), Path(config.HF_DATASETS_CACHE)
            parts = {name: name.split("/") for name in names}
            return [
                name
                for name, (*owner, own) in parts.items()
                if not (hub / "--".join(["datasets", *owner, own])).exists()
                and not (made / "___".join([*owner, camelcase_to_snakecase(own)])).exists()
            ]
    return []


def _named(mirror: str, found: Mapping[str, Any]) -> Any:
    """Return the splits as a mapping that raises Refused for a missing one."""
    import datasets

    class Splits(datasets.DatasetDict):  # type: ignore[misc]
        def __getitem__(self, split: str) -> Any:
            if split not in self:
                there = ", ".join(self)
                raise Refused(f"{mirror} has no split {split!r}, only {there}; add it")
            return super().__getitem__(split)

    return Splits(found)


def mirrored_files(root: Path, name: str | None) -> list[Path]:
    """Return the files that are read from a mirror for a configuration.

    Args:
        root: Folder of the mirrored dataset.
        name: Configuration of the dataset; None: the default.

    Returns:
        Files, or one folder that `save_to_disk` wrote; empty where the mirror lacks it.
    """
    folder = _folder(root, name)
    if folder is None:
        return []
    return [folder] if _is_saved(folder) else [*chain(*_data_files(folder).values())]


def _folder(root: Path, name: str | None) -> Path | None:
    """Return a mirror's folder of a configuration; None if it has none."""
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
            if path.suffix in _SUFFIXES:
                split = re.sub(r"-\d{5}-of-\d{5}$", "", path.stem)
                found.setdefault(split, []).append(path)
    return found


def _read(files: list[Path]) -> Any:
    """Read files into memory, as `datasets` might have no folder for its cache."""
    import datasets
    import pyarrow as pa
    import pyarrow.json
    import pyarrow.parquet

    read = pyarrow.parquet.read_table if files[0].suffix == ".parquet" else pyarrow.json.read_json
    return datasets.Dataset(pa.concat_tables([read(path) for path in files]))
