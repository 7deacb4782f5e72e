"""Local mirrors of the datasets that tasks read, and whether the hub has the others.

`prefill`, too, finds out here what a provider would read now. `evaluation.prefill.mirrors` describes
the layout of a mirror: `<config>/<split>….parquet`, or saved by `save_to_disk`. A mirror that is one
file is whatever split a task reads, but not two of them.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from evaluation.providers.adapters.contract import Line, RefusedTask, one_line
from evaluation.providers.adapters.mirror_files import (
    FileStamp,
    data_files,
    find_mirror,
    folder_of,
    is_saved,
    mirrored_files,
    parts_of,
    places,
    read_files,
    status_of,
)

_SECONDS = 10.0
"""Time to wait for the hub's answer."""


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
    asked: dict[str, list[str]] = {}

    def load(
        path: str,
        name: str | None = None,
        *arguments: Any,
        split: str | None = None,
        **options: Any,
    ) -> Any:
        root = find_mirror(path, mirrors)
        record["datasets"][path] = "hub" if root is None else str(root)
        if not any((entry["dataset"], entry["config"]) == (path, name) for entry in record["read"]):
            record["read"].append({"dataset": path, "config": name, "files": _before(root, name)})
        if root is None:
            return _from_hub(from_hub, path, name, *arguments, split=split, **options)
        if root.is_file():
            splits = _one_file(path, root, asked.setdefault(path, []))
            return splits if split is None else splits[split]
        found = _splits(path, root, name)
        splits = _named(f"the mirror {root} of {path}", found)
        return splits if split is None else splits[split]

    datasets.load_dataset = load
    return record


def _before(root: Path | None, name: str | None) -> list[tuple[str, FileStamp]] | None:
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
        raise RefusedTask(
            f"the dataset {path} cannot be loaded ({type(error).__name__}: {one_line(error)}); run this "
            "with internet access, or name a local copy under `mirrors`"
        ) from None


def check_tasks(request: Line, absent: Callable[[Line], Iterable[str]]) -> None:
    """Refuse all unsupported tasks and all unavailable data of a request, in one sentence.

    Args:
        request: `tasks` and `mirrors`, as the contract describes them.
        absent: Returns the datasets that a task reads without a mirror; raises RefusedTask.

    Raises:
        RefusedTask: There are such tasks or data.
    """
    problems: list[str] = []
    without: dict[str, None] = {}
    for asked in request["tasks"]:
        try:
            without |= dict.fromkeys(absent({**asked, "mirrors": request["mirrors"]}))
        except RefusedTask as error:
            problems.append(str(error))
    if lacking := _unreachable(list(without)):
        problems.append(
            f"the hub cannot be reached, and these datasets have no mirror: {', '.join(lacking)}; run this "
            "with internet access, or name local copies under `mirrors`"
        )
    if problems:
        raise RefusedTask("; ".join(problems))


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
    """Return the splits as a mapping that raises RefusedTask for a missing one."""
    import datasets

    class MirrorSplits(datasets.DatasetDict):  # type: ignore[misc]
        def __getitem__(self, split: str) -> Any:
            if split not in self:
                there = ", ".join(self)
                raise RefusedTask(f"{mirror} has no split {split!r}, only {there}; add it")
            return super().__getitem__(split)

    return MirrorSplits(found)


def _one_file(dataset: str, root: Path, asked: list[str]) -> Any:
    """Return the splits of a mirror of one file: the first that is `asked`; raises RefusedTask for another.

    It would hold the same rows, so that solved examples were questions.
    """
    import datasets

    rows = read_files([root])

    class SingleSplit(datasets.DatasetDict):  # type: ignore[misc]
        def __getitem__(self, split: str) -> Any:
            asked.append(split)
            if split != asked[0]:
                raise RefusedTask(
                    f"the mirror {root} of {dataset} is one file, which cannot be both {asked[0]!r} and "
                    f"{split!r}; make it a folder with a file for each"
                )
            return rows

        def __contains__(self, split: object) -> bool:
            return not asked or split == asked[0]

    return SingleSplit({"the file": rows})


def _splits(dataset: str, root: Path, name: str | None) -> dict[str, Any]:
    import datasets

    folder = folder_of(root, name)
    if folder is None:
        raise RefusedTask(
            f"the mirror {root} of {dataset} has no configuration {name!r}; put its splits at "
            f"{places(root, name)[0]}/<split>.parquet"
        )
    if is_saved(folder):
        return dict(datasets.load_from_disk(str(folder)))
    return {split: read_files(files) for split, files in data_files(folder).items()}
