"""Tasks of olmo-eval by name: find them, check them before rendering, and determine their metrics.

A name is a suite's, or `task[:variant…]`, where later variants overwrite settings of earlier ones.
"""

import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from evaluation.providers.adapters.contract import Line, RefusedTask, no_such_task, not_supported

TITLE = "olmo-eval"

NORMALIZATIONS = {
    "LogprobMCAccuracyMetric": "raw",
    "LogprobPerCharMCAccuracyMetric": "per_char",
    "LogprobPerTokenMCAccuracyMetric": "per_token",
    "LogprobUncondMCAccuracyMetric": "pmi",
}
"""This project's name for how each of olmo-eval's metrics normalizes candidates."""

GOLD_ONLY = {"BPBMetricInstanceAvg": "gold_bits_per_byte", "GreedyAccuracyMetric": "greedy"}
"""This project's name of metrics that need only the right answer's log-probability."""

_ANTLR = "4.11"
"""The version with which sympy reads LaTeX; without it, answers are silently compared as strings."""

_WITH_PACKAGES = {
    "bigcodebench": "those that its requirements-eval.txt lists",
    "ds1000": "Python 3.10 with PyTorch, TensorFlow and others in old versions",
}
"""Packages that programs of tasks use, by the first part of the tasks' names."""

_OTHER_LANGUAGES = "its programs are in C++, Java, JavaScript, PHP, Rust and shell"


def check_environment() -> None:
    """Raise RefusedTask where olmo-eval would score differently, or not at all."""
    if sys.version_info < (3, 12):
        raise RefusedTask(
            f"{TITLE} needs Python 3.12 or newer, and its environment has {sys.version.split()[0]}; "
            "install one (`pyenv install 3.12`, `uv python install 3.12`), and run `make providers` "
            "with PYTHON312=<its path>"
        )
    try:
        antlr = version("antlr4-python3-runtime")
    except PackageNotFoundError:
        antlr = "none"
    if not antlr.startswith(_ANTLR):
        raise RefusedTask(
            f"{TITLE} compares answers in mathematics as strings without antlr4-python3-runtime {_ANTLR}, "
            f"and its environment has {antlr}; run `make providers` again"
        )


def find_tasks(name: str, python: str | None = None) -> dict[str, Any]:
    """Return the named task, or the tasks of a suite, each once.

    Args:
        name: A task's name, variants included, or a suite's.
        python: Interpreter of the environment whose packages programs may use.

    Raises:
        RefusedTask: There is none of this name, or one is not supported.
    """
    import olmo_eval.evals.tasks  # noqa: F401
    from olmo_eval.evals.suites import get_suite, suite_exists
    from olmo_eval.evals.tasks.common import get_task

    specs = dict.fromkeys(get_suite(name).expand() if suite_exists(name) else [name])
    try:
        tasks = {spec: get_task(spec) for spec in specs}
    except KeyError:
        raise no_such_task(TITLE, name, task_names(), "task and no suite") from None
    for spec, task in tasks.items():
        _check(spec, task, has_packages=python is not None)
    return tasks


def task_names() -> Iterator[str]:
    """Yield olmo-eval's suites, tasks, and tasks with one variant or with two."""
    from olmo_eval.evals.suites import list_suites
    from olmo_eval.evals.tasks.common import list_tasks, list_variants

    yield from list_suites()
    variants = list_variants()
    for task in list_tasks():
        yield task
        names = variants.get(task, [])
        yield from (f"{task}:{name}" for name in names)
        yield from (f"{task}:{name}:{two}" for name in names for two in names if name != two)


def _check(spec: str, task: Any, *, has_packages: bool) -> None:
    from olmo_eval.common.scorers.execution import ContextScorer

    scorers = list(task._get_scorers().values())
    _check_programs(spec, scorers, has_packages=has_packages)
    needs = [
        dependency for dependency in task.config.dependencies or () if "antlr4" not in dependency
    ]
    why = None
    if any(isinstance(scorer, ContextScorer) for scorer in scorers):
        why = "its metric asks another model"
    elif needs:
        why = f"it needs packages that its environment lacks ({', '.join(needs)})"
    elif not task.config.metrics:
        why = "it has no metric"
    if why is not None:
        raise not_supported(spec, TITLE, why)


def _check_programs(spec: str, scorers: list[Any], *, has_packages: bool) -> None:
    """Refuse programs in another language than Python, or without the packages that they need."""
    from olmo_eval.common.scorers import CodeExecutionScorer
    from olmo_eval.common.scorers.execution import ExecutionScorer

    running = [scorer for scorer in scorers if isinstance(scorer, ExecutionScorer)]
    if not running:
        return
    packages = _WITH_PACKAGES.get(spec.partition(":")[0])
    if packages is not None and not has_packages:
        raise RefusedTask(
            f"the programs of {spec} use packages ({packages}); give the task `python: <the Python of an "
            "environment that has them>`"
        )
    why = None
    if spec.startswith("multipl_e"):
        why = _OTHER_LANGUAGES
    elif packages is None and any(
        type(scorer).ascore is not CodeExecutionScorer.ascore or scorer.language != "python"
        for scorer in running
    ):
        why = "its programs are run in a way that this project does not know"
    if why is not None:
        raise not_supported(spec, TITLE, why)


def normalization_of(spec: str, task: Any) -> str:
    """Return this project's name of a task's normalization, or of a measure of the right answer.

    Raises:
        RefusedTask: It has another measure.
    """
    names = [type(metric).__name__ for metric in task.config.metrics]
    ranked = [NORMALIZATIONS[name] for name in names if name in NORMALIZATIONS]
    if ranked:
        return ranked[-1]  # they share a key in olmo-eval's results, so the last one stays
    alone = [GOLD_ONLY[name] for name in names if name in GOLD_ONLY]
    if not alone:
        raise not_supported(spec, TITLE, f"it is measured by {', '.join(names)}")
    return alone[0]


def remark_on(spec: str, task: Any, normalization: str) -> str | None:
    """Return a sentence if olmo-eval does not compute what a task's name or headline promises."""
    from olmo_eval.runners.processing.utils import get_metric_metadata

    computed = {f"{metric.name}:{metric.scorer().name}" for metric in task.config.metrics}
    headline = get_metric_metadata(task)
    if "bpb" in spec.split(":")[1:] and "bits_per_byte:bits_per_byte" not in computed:
        shown = "reports this accuracy" if headline in computed else "has no headline"
        return (
            f"{spec} is named after bits per byte, but {TITLE} computes an accuracy ({normalization}) and "
            f"{shown}; the bits per byte that its name promises are gold_bits_per_byte"
        )
    if headline is not None and headline not in computed:
        return f"the headline of {spec} is {headline}, which {TITLE} does not compute; it computes {', '.join(sorted(computed))}"
    return None


def in_common(request: Line, how: str, values: Mapping[str, Any]) -> Any:
    """Return the value that all tasks of a suite share.

    Args:
        how: How they differ: the words after "the tasks".
        values: The value of each task, by name.

    Raises:
        RefusedTask: They differ.
    """
    first, *others = values.values()
    if any(other != first for other in others):
        name = request["task"]
        raise RefusedTask(
            f"the tasks of {name} {how}; {_instead(name, expands=request['expands'])}"
        )
    return first


def _instead(name: str, *, expands: bool) -> str:
    from olmo_eval.evals.suites import get_suite

    if expands:
        return f'write instead `olmo_eval_suites: ["{name}"]`, outside of all sections'
    parts = (part if isinstance(part, str) else part.name for part in get_suite(name).tasks)
    return f"write instead a task for each of {', '.join(parts)}, and `groups` of them"
