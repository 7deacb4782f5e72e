"""Tasks of lighteval by name, without its registry.

The registry cannot be used: its imports access the network and unpickle the answers. So only the
module that has the task is imported.
"""

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.providers.adapters.contract import (
    Line,
    RefusedTask,
    no_such_task,
    not_supported,
    one_line,
    seed,
)
from evaluation.providers.adapters.task_files import check_files

TITLE = "lighteval"

_REFUSED_MODULES = {
    "lcb": "its metric runs the programs that a model writes, and unpickles their tests",
    "tiny_benchmarks": "its metric unpickles what it downloads",
    "mt_bench": "it has several turns, and its metric asks another model",
    "mix_eval": "its metric asks another model",
    "simpleqa": "its metric asks another model",
    "aa_omniscience": "its metric asks another model",
    "hle": "its metric asks another model",
    "slr_bench": "its metric runs the programs that a model writes",
}


def _modules() -> dict[str, Path]:
    """Return the files of tasks by the module's name."""
    import lighteval.tasks

    folder = Path(lighteval.tasks.__path__[0]) / "tasks"
    files = {path.stem: path for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}
    return files | {path.parent.name: path for path in sorted(folder.glob("*/main.py"))}


def find_configs(request: Line) -> dict[str, Any]:
    """Return the requested task, or the tasks whose names begin with its name and a colon, by name.

    Raises:
        RefusedTask: There is none, or it is not supported.
    """
    _without_downloads()
    name, own = request["task"], request.get("include_path")
    seed(f"{name}/data")
    if own is not None:
        table = _user_table(name, Path(own))
        if not (configs := _named(name, table)):
            raise no_such_task(TITLE, name, table)
        return configs
    base = name.partition(":")[0]
    files = {module: path.read_text(encoding="utf-8") for module, path in _modules().items()}
    near = sorted((m for m in files if base in files[m]), key=lambda module: module != base)
    known: list[str] = []
    for module in near:
        if module in _REFUSED_MODULES:
            if f'"{base}' in files[module]:
                raise not_supported(name, TITLE, _REFUSED_MODULES[module])
            continue
        table = _table(module, files[module])
        known += table
        if configs := _named(name, table):
            return configs
    raise no_such_task(TITLE, name, known)


def _named(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    matching = {key: c for key, c in table.items() if key == name or key.startswith(f"{name}:")}
    return {name: matching[name]} if name in matching else matching


def _user_table(name: str, path: Path) -> dict[str, Any]:
    """Return a user's tasks, which their module lists under `TASKS_TABLE`."""
    spec = importlib.util.spec_from_file_location("user_tasks", path)
    if path.is_dir() or spec is None or spec.loader is None:
        raise RefusedTask(
            f"`include_path` of a task of lighteval is a Python file, and {path} is none"
        )
    check_files(name, TITLE, [path])
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return {config.name: config for config in module.TASKS_TABLE}
    except Exception as error:  # noqa: BLE001 - the code is anyone's
        raise RefusedTask(
            f"{path} lists no tasks ({type(error).__name__}: {one_line(error)})"
        ) from None


def _table(module: str, source: str) -> dict[str, Any]:
    package = "lighteval.tasks.tasks"
    is_folder = _modules()[module].name == "main.py"
    if "TASKS_TABLE" not in source:
        return {}
    loaded = importlib.import_module(
        f"{package}.{module}.main" if is_folder else f"{package}.{module}"
    )
    if module == "ifbench":  # otherwise each of its instructions would install a spaCy model
        instructions: Any = importlib.import_module(f"{package}.ifbench.instructions")
        instructions.RESOURCES_DOWNLOADED = True
    return {config.name: config for config in loaded.TASKS_TABLE}


def _without_downloads() -> None:
    """Keep modules from downloading NLTK's data when they are imported."""
    import nltk

    nltk.download = lambda *_, **__: True
