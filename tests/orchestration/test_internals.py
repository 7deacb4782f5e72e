"""A Snakemake or executor that lacks a part that we set is refused; all else that we use is there."""

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

PACKAGES = ("snakemake", "snakemake-executor-plugin-slurm")
"""Packages whose undocumented parts are used, and whose minor versions are fixed."""


def workflow() -> Any:
    """What is set of a workflow, as a run has it."""
    executor = object.__new__(plugin.Executor)
    return SimpleNamespace(
        dag_settings=SimpleNamespace(**vars(types.DAGSettings())),
        execution_settings=SimpleNamespace(**vars(types.ExecutionSettings())),
        default_target=None,
        scheduler=SimpleNamespace(_executor=executor, _lock=None),
        execute=lambda **_: None,
        rules=[rule()],
    )


def rule() -> Any:
    return SimpleNamespace(name="all", input=[], is_producer=lambda file: False, get_wildcards=dict)


def executed(workflow: Any) -> None:
    """A run begins, and is a dry one."""
    Internals(workflow).before_execution(lambda is_dry: None)
    told = SimpleNamespace(common_settings=SimpleNamespace(dryrun_exec=True))
    workflow.execute(executor_plugin=told)


SETS: dict[str, Callable[[Any], object]] = {
    "dag_settings.force_incomplete": lambda w: executed(w),
    "execution_settings.keep_incomplete": lambda w: executed(w),
    "default_target": lambda w: Internals(w).make_by_default("all"),
    "scheduler._lock": lambda w: Internals(w).let_stops_in(),
}


@pytest.mark.parametrize("part", SETS)
def test_a_part_that_is_missing(part: str) -> None:
    """Python would set it without a word, and Snakemake not read it."""
    SETS[part](workflow())
    lacking = workflow()
    *owners, name = part.split(".")
    owner = lacking
    for one in owners:
        owner = getattr(owner, one)
    delattr(owner, name)
    with pytest.raises(EvaluationError, match=f"has no {name}, which this workflow sets"):
        SETS[part](lacking)


def test_what_a_target_needs() -> None:
    """By all rules between, but for a rule without end, which Snakemake would stop at a missing file."""
    run, packed = workflow(), SimpleNamespace(name="unpack", input=["{file}.gz"])
    packed.is_producer = lambda file: not file.startswith(("all", "shown"))
    packed.get_wildcards = lambda file: {"file": file}
    shown = SimpleNamespace(name="shown", input=["{stage}/report.html", lambda wildcards: "x"])
    shown.is_producer = lambda file: file.startswith("shown/")
    shown.get_wildcards = lambda file: {"stage": file.removeprefix("shown/")}
    run.rules[0].input = ["shown/b", "c"]
    run.rules += [packed, shown]
    run.default_target = "all"
    needed = set(Internals(run).targets())
    assert needed > {"all", "shown/b", "b/report.html", "c", "c.gz"}
    assert len(needed) < 100
    run.dag_settings = types.DAGSettings(targets={"shown/b"})
    assert "c" not in Internals(run).targets()


def sources() -> dict[Path, str]:
    """Texts of the package and the rules, without the file that checks what it uses."""
    folders = ROOT / "evaluation", ROOT / "workflow"
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    rules = [path for path in files if path.suffix in (".py", ".smk") or path.name == "Snakefile"]
    return {path: path.read_text() for path in rules if path.name != "internals.py"}


def test_nothing_of_the_workflow_is_used_unchecked() -> None:
    """Every attribute of Snakemake's workflow is asked for through `Internals`."""
    for path, text in sources().items():
        used = re.findall(r"(?<![\w./`\"-])(?:self\.)?_?workflow\.(\w+)(?!\.rst|\w)", text)
        assert not used, (path, used)


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
    with pytest.raises(EvaluationError, match=f"has no {name}"):
        keep_unanswered(executor, lambda states: None)


def test_snakemake_has_what_the_stand_in_has() -> None:
    """The names above, in the class itself or in what it sets."""
    source = Path(sys.modules[Workflow.__module__].__file__ or "").read_text()
    for name in vars(workflow()):
        assert hasattr(Workflow, name) or f"self.{name}" in source or f"{name}:" in source, name


def test_the_tested_versions_are_those_installed() -> None:
    """And pyproject.toml allows none beyond their minor versions."""
    project = (Path(internals.__file__).parents[2] / "pyproject.toml").read_text()
    for package in PACKAGES:
        tested = version(package)
        major, minor, _ = tested.split(".")
        assert f'"{package}>={tested},<{major}.{int(minor) + 1}"' in project
