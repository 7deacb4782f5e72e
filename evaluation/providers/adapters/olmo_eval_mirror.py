"""Copy the datasets that olmo-eval's tasks read into a folder that `mirrors` can name.

    python -m evaluation.providers.adapters.olmo_eval_mirror FOLDER TASK_OR_SUITE…

It runs in olmo-eval's environment, with internet access, and lets olmo-eval itself load the rows. So a
copy has the rows that a task reads, by the id in its code: `<id>/<configuration>/<split>.parquet`.
"""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.providers.adapters.contract import Line, RefusedTask, one_line
from evaluation.providers.adapters.olmo_eval import prepare
from evaluation.providers.adapters.olmo_eval_data import RULER, NoRows, of_a_file
from evaluation.providers.adapters.olmo_eval_tasks import check_environment, find_tasks


def mirror(folder: Path, names: list[str]) -> list[str]:
    """Copy the datasets that tasks and suites read; return a sentence for each task that failed."""
    check_environment()
    _copy_what_is_loaded(folder)
    failed = []
    for spec, task in {
        s: t for name in names for s, t in find_tasks(name, sys.executable).items()
    }.items():
        try:
            prepare(spec, task)
        except (NoRows, RefusedTask) as error:
            failed.append(f"{spec}: {error}")
    return failed


def _copy_what_is_loaded(folder: Path) -> None:
    import datasets
    import olmo_eval.evals.tasks.ruler as ruler
    from olmo_eval.data.backends.huggingface import HuggingFaceBackend

    load, from_file, download = (
        HuggingFaceBackend.load,
        datasets.load_dataset,
        ruler.download_ruler_data,
    )

    def load_parts(backend: Any, source: Any, streaming: bool = False) -> Iterator[Line]:
        for part in source.split.split("+"):  # "validation+train" is in this order
            own = replace(source, split=part)
            rows = _loaded(source.path, lambda own=own: list(load(backend, own)))
            yield from _written(folder / source.path / (source.subset or "default"), part, rows)

    def load_file(path: str, *arguments: Any, **options: Any) -> Any:
        files = options.get("data_files")
        if path != "json" or not isinstance(files, str):
            return from_file(path, *arguments, **options)
        dataset, config, split = of_a_file(files)
        rows = _loaded(dataset, lambda: list(from_file(path, *arguments, **options)))
        return _written(folder / dataset / config, split, rows)

    def download_ruler() -> str:
        root = str(_loaded(RULER, download))
        shutil.copytree(Path(root) / "data", folder / RULER / "data", dirs_exist_ok=True)
        return root

    HuggingFaceBackend.load, datasets.load_dataset = load_parts, load_file
    ruler.download_ruler_data = download_ruler


def _loaded(dataset: str, load: Any) -> Any:
    """Load; an error becomes NoRows, as olmo-eval swallows Exceptions and drops solved examples."""
    try:
        return load()
    except Exception as error:  # noqa: BLE001 - the hub's client raises what it likes
        what = f"{type(error).__name__}: {one_line(error)}"
        raise NoRows(f"{dataset} cannot be loaded ({what})") from None


def _written(folder: Path, split: str, rows: list[Line]) -> list[Line]:
    import datasets

    folder.mkdir(parents=True, exist_ok=True)
    aside, path = folder / f".{split}.tmp", folder / f"{split}.parquet"
    if not path.exists():
        datasets.Dataset.from_list(rows).to_parquet(str(aside))
        aside.rename(path)
        print(f"{path}: {len(rows):,} rows")
    return rows


if __name__ == "__main__":
    try:
        sys.exit("\n".join(mirror(Path(sys.argv[1]), sys.argv[2:])) or None)
    except RefusedTask as error:
        sys.exit(str(error))
