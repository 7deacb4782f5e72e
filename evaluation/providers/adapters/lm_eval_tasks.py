"""Tasks of lm-evaluation-harness by name: find them, check them before their code runs, load them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.providers.adapters.contract import (
    Line,
    RefusedTask,
    no_such_task,
    not_supported,
    one_line,
)
from evaluation.providers.adapters.task_files import check_files, user_files

TITLE = "lm-evaluation-harness"

_SEVERAL = ("majority_vote", "take_first_k")
"""Filters that combine several samples of a prompt."""

_LIKELIHOODS = {
    "loglikelihood_rolling": "it measures perplexity; make its text a slice",
    "loglikelihood": "it scores one given continuation, so that it ranks and generates nothing",
}
"""Why tasks that only measure likelihoods are not supported, by output type."""


def load_tasks(request: Line) -> dict[str, Any]:
    """Load the requested task, or the tasks of a group, by name.

    Raises:
        RefusedTask: There is none, or it is not supported.
    """
    from lm_eval.tasks import TaskManager

    name, own = request["task"], request.get("include_path")
    if own is not None:
        _check_readable(Path(own))
    manager = TaskManager(include_path=own)
    if name not in manager.task_index:
        raise no_such_task(TITLE, name, manager.all_tasks)
    check_files(name, TITLE, _files(name, manager, set()))
    try:
        tasks: dict[str, Any] = manager.load([name])["tasks"]
    except ImportError as error:
        raise RefusedTask(
            f"{name} needs what the environment of {TITLE} lacks ({error}); install it there"
        ) from None
    for part, task in tasks.items():
        _check(part, task)
    return tasks


def _check_readable(folder: Path) -> None:
    """Raise RefusedTask for a user's file that lm-evaluation-harness would silently skip."""
    from lm_eval.tasks._yaml_loader import load_yaml

    if not folder.is_dir():
        raise RefusedTask(f"`include_path` of a task of {TITLE} is a folder, and {folder} is none")
    for path in user_files(folder):
        if path.suffix == ".yaml":
            try:
                load_yaml(path, resolve_func=False)
            except Exception as error:  # noqa: BLE001 - whatever its loader raises
                raise RefusedTask(f"{path} cannot be read ({one_line(error)})") from None


def _files(name: str, manager: Any, seen: set[str]) -> Iterator[Path]:
    """Yield the YAML files of a task and of the members of a group, and the code next to them."""
    entry = manager.task_index.get(name)
    if entry is None or name in seen:
        return
    seen.add(name)
    if entry.yaml_path is not None:
        yield entry.yaml_path
        yield from _code(entry.yaml_path)
    members = (entry.cfg or {}).get("task")
    tagged = [n for n, one in manager.task_index.items() if name in one.tags]
    for member in [*(members if isinstance(members, list) else []), *tagged]:
        inner = member if isinstance(member, str) else member.get("task", member.get("group"))
        if isinstance(inner, str):
            yield from _files(inner, manager, seen)


def _code(yaml: Path) -> Iterator[Path]:
    """Yield Python files that the YAML file, or one that it includes, names as `!function module.name`."""
    text = yaml.read_text(encoding="utf-8")
    for module in set(re.findall(r"!function\s+([\w.]+)\.\w+", text)):
        path = yaml.parent / f"{module.replace('.', '/')}.py"
        if path.is_file():
            yield path
    for included in re.findall(r"^include:\s*(\S+)", text, flags=re.MULTILINE):
        path = yaml.parent / included.strip("'\"")
        if path.is_file():
            yield path
            yield from _code(path)


def _check(name: str, task: Any) -> None:
    from lm_eval.api.task import ConfigurableTask

    filters = [step["function"] for one in task.config.filter_list or [] for step in one["filter"]]
    why = _LIKELIHOODS.get(task.OUTPUT_TYPE)
    if type(task) is not ConfigurableTask:
        why = "it is a program of its own, not a description"
    elif getattr(task, "UNSAFE_CODE", False):
        why = "its metric runs the programs that a model writes"
    elif getattr(task, "MULTIMODAL", False):
        why = "it asks about images or sound"
    elif any(one in _SEVERAL for one in filters):
        why = "its metric judges several samples of a prompt together"
    if why is not None:
        raise not_supported(name, TITLE, why)
