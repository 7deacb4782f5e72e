"""A Snakemake or executor that lacks a part we rely on is refused, with the version that has it."""

import re
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake_executor_plugin_slurm as plugin
from snakemake.api import Workflow
from snakemake.settings import types

from evaluation.errors import EvaluationError
from evaluation.orchestration import internals
from evaluation.orchestration.internals import Internals, keep_unanswered
from tests.conftest import ROOT


def workflow() -> Any:
    """Everything that is used of a workflow, as a run has it."""
    modifier = SimpleNamespace(is_main_snakefile=lambda: True)
    executor = object.__new__(plugin.Executor)
    executor.run_uuid = "run"
    return SimpleNamespace(
        dag_settings=types.DAGSettings(),
        dag=SimpleNamespace(forcefiles=set()),
        execution_settings=types.ExecutionSettings(),
        is_main_process=True,
        modifier=modifier,
        scheduler=SimpleNamespace(_executor=executor, _lock=None),
        execute=lambda **_: None,
        _onstart=lambda log: None,
    )


def executed(workflow: Any) -> None:
    """A run begins, and is a dry one."""
    Internals(workflow).before_execution(lambda is_dry: [])
    told = SimpleNamespace(common_settings=SimpleNamespace(dryrun_exec=True))
    workflow.execute(executor_plugin=told)


USES: dict[str, Callable[[Any], object]] = {
    "modifier": lambda w: Internals(w).is_module,
    "dag_settings": lambda w: executed(w),
    "dag": lambda w: Internals(w).force("a"),
    "execution_settings": lambda w: executed(w),
    "scheduler": lambda w: Internals(w).slurm_executor,
    "execute": lambda w: Internals(w).before_execution(lambda is_dry: []),
    "_onstart": lambda w: Internals(w).before_start(lambda: None),
    "dag.forcefiles": lambda w: Internals(w).force("a"),
    "modifier.is_main_snakefile": lambda w: Internals(w).is_module,
    "scheduler._executor": lambda w: Internals(w).slurm_executor,
    "scheduler._lock": lambda w: Internals(w).let_stops_in(),
    "scheduler._executor.run_uuid": lambda w: Internals(w).slurm_executor,
}


@pytest.mark.parametrize("part", USES)
def test_a_part_that_is_missing(part: str) -> None:
    """Not only is the run refused that needs it: nothing is skipped in silence."""
    USES[part](workflow())
    lacking = workflow()
    *owners, name = part.split(".")
    owner = lacking
    for one in owners:
        owner = getattr(owner, one)
    delattr(owner, name)
    with pytest.raises(EvaluationError, match=rf"has no .*{name}, which this workflow relies on"):
        USES[part](lacking)


def parts() -> set[str]:
    """Dotted names of all parts that rules and orchestration ask for."""
    folders = ROOT / "evaluation/orchestration", ROOT / "workflow"
    files = [path for folder in folders for path in folder.rglob("*.[ps]*") if path.is_file()]
    texts = [path.read_text() for path in files if path.suffix in (".py", ".smk")]
    return {name for text in texts for name in re.findall(r'\b(?i:part)\("([\w.]+)"\)', text)}


@pytest.mark.parametrize("part", sorted(parts()))
def test_each_part_that_is_asked_for(part: str) -> None:
    """Snakemake has it, and without it the version that has it is named."""
    owners = part.split(".")
    for count in range(len(owners)):
        holder = SimpleNamespace()
        for name in reversed(owners[:count]):
            holder = SimpleNamespace(**{name: holder})
        with pytest.raises(EvaluationError, match=rf"has no .*{owners[count]}, which"):
            Internals(holder).part(part)


def test_nothing_of_the_workflow_is_used_unchecked() -> None:
    """What Snakemake documents for rules is free; the rest goes through `part`."""
    free = "is_main_process configfiles overwrite_configfiles current_basedir execute _onstart dag"
    for path in (
        *(ROOT / "evaluation/orchestration").glob("*.py"),
        *(ROOT / "workflow").rglob("*.smk"),
    ):
        used = re.findall(r"(?<![\w.`/])(?:self\.)?workflow\.(\w+)", path.read_text())
        told = {name for name in used if path.name != "internals.py"} - {*free.split()}
        assert not told, (path, told)


@pytest.mark.parametrize(
    "name", ["query_job_status", "check_active_jobs", "run_jobs", "report_job_success"]
)
def test_a_part_of_the_executor(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    executor = workflow().scheduler._executor
    if name == "query_job_status":
        monkeypatch.delattr(plugin, name)
    else:
        kept = {
            one: getattr(executor, one) for one in ("check_active_jobs", "run_jobs") if one != name
        }
        executor = type("Other", (), {**kept, "__module__": plugin.__name__})()
    with pytest.raises(EvaluationError, match=r"snakemake-executor-plugin-slurm==2\.8\.0"):
        keep_unanswered(executor, lambda states: None)


def test_snakemake_has_what_the_stand_in_has() -> None:
    """The names above, in the class itself or in what it sets."""
    source = Path(sys.modules[Workflow.__module__].__file__ or "").read_text()
    for name in vars(workflow()):
        assert hasattr(Workflow, name) or f"self.{name}" in source or f"{name}:" in source, name


def test_the_tested_versions_are_those_installed() -> None:
    """And pyproject.toml allows none beyond their minor versions."""
    project = (Path(internals.__file__).parents[2] / "pyproject.toml").read_text()
    for package, tested in internals._TESTED.items():
        assert version(package) == tested
        major, minor, _ = tested.split(".")
        assert f'"{package}>={tested},<{major}.{int(minor) + 1}"' in project
