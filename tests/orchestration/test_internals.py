"""A Snakemake or executor that lacks a part we rely on is refused, with the version that has it."""

import re
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake_executor_plugin_slurm as plugin
from snakemake.api import Workflow
from snakemake.resources import Resource
from snakemake.settings import types

from evaluation.errors import EvaluationError
from evaluation.orchestration import internals
from evaluation.orchestration.internals import Internals, keep_unanswered, value_of
from tests.conftest import ROOT


def workflow() -> Any:
    """Everything that is used of a workflow, as a run has it."""
    modifier = SimpleNamespace(is_main_snakefile=lambda: True)
    executor = object.__new__(plugin.Executor)
    executor.run_uuid = "run"
    return SimpleNamespace(
        dag_settings=types.DAGSettings(),
        dag=SimpleNamespace(forcefiles=set(), jobs=[job()], needrun_jobs=lambda: [job()]),
        execution_settings=types.ExecutionSettings(),
        modifier=modifier,
        default_target=None,
        scheduler=SimpleNamespace(_executor=executor, _lock=None),
        execute=lambda **_: None,
        rules=[rule()],
        _onstart=lambda log: None,
        _onerror=lambda log: None,
    )


def rule() -> Any:
    return SimpleNamespace(name="all", input=[], is_producer=lambda file: False, get_wildcards=dict)


def job() -> Any:
    return SimpleNamespace(rule=rule(), input=[], output=[])


def executed(workflow: Any) -> None:
    """A run begins, and is a dry one."""
    Internals(workflow).before_execution(lambda is_dry: None)
    told = SimpleNamespace(common_settings=SimpleNamespace(dryrun_exec=True))
    workflow.execute(executor_plugin=told)


USES: dict[str, Callable[[Any], object]] = {
    "modifier": lambda w: Internals(w).is_module,
    "dag_settings": lambda w: executed(w),
    "dag": lambda w: Internals(w).force("a"),
    "execution_settings": lambda w: executed(w),
    "scheduler": lambda w: Internals(w).slurm_executor,
    "execute": lambda w: Internals(w).before_execution(lambda is_dry: None),
    "_onstart": lambda w: Internals(w).before_hook("_onstart", lambda: None),
    "_onerror": lambda w: Internals(w).before_hook("_onerror", lambda: None),
    "rules": lambda w: Internals(w).targets(),
    "default_target": lambda w: Internals(w).make_by_default("all"),
    "dag.jobs": lambda w: Internals(w).jobs,
    "dag.needrun_jobs": lambda w: Internals(w).due_jobs,
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


@pytest.mark.parametrize("name", ["input", "output", "rule", "name"])
def test_a_part_of_a_job(name: str) -> None:
    lacking, one = workflow(), job()
    lacking.dag.needrun_jobs = lambda: [one]
    delattr(one.rule if name == "name" else one, name)
    with pytest.raises(EvaluationError, match=rf"has no .*{name}, which this workflow relies on"):
        _ = Internals(lacking).due_jobs


@pytest.mark.parametrize("name", ["name", "input", "is_producer", "get_wildcards"])
def test_a_part_of_a_rule(name: str) -> None:
    lacking = workflow()
    delattr(lacking.rules[0], name)
    with pytest.raises(EvaluationError, match=rf"has no .*{name}, which this workflow relies on"):
        Internals(lacking).targets()


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


def test_a_resource_without_its_value() -> None:
    assert value_of(Resource("gpu", 2)) == 2
    with pytest.raises(EvaluationError, match=r"has no .*raw, which this workflow relies on"):
        value_of(SimpleNamespace())


def sources() -> dict[Path, str]:
    """Texts of the package and the rules, without the file that checks what it uses."""
    folders = ROOT / "evaluation", ROOT / "workflow"
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    rules = [path for path in files if path.suffix in (".py", ".smk") or path.name == "Snakefile"]
    return {path: path.read_text() for path in rules if path.name != "internals.py"}


def parts() -> set[str]:
    """Dotted names of all parts that rules and orchestration ask for."""
    texts = [*sources().values(), Path(internals.__file__).read_text()]
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
    """Every attribute of Snakemake's workflow is asked for through `Internals`."""
    for path, text in sources().items():
        used = re.findall(r"(?<![\w./`\"-])(?:self\.)?_?workflow\.(\w+)(?!\.rst|\w)", text)
        assert not used, (path, used)


def test_what_is_imported_of_snakemake() -> None:
    """Few names: one that a version lacks ends a run at its first line."""
    assert imported(sources().values()) == {
        *("snakemake.exceptions.WorkflowError", "snakemake.io.ancient", "snakemake.logging.logger"),
        *("snakemake.resources.Resources", "snakemake.utils.min_version"),
        *("snakemake.logging.ColorizingTextHandler", "snakemake.logging.get_event"),
        *("snakemake.logging.show_logs", "snakemake_interface_logger_plugins.common.LogEvent"),
    }


def imported(texts: Iterable[str]) -> set[str]:
    lines = [
        line for text in texts for line in re.findall(r"from (snakemake\S*) import (.+)", text)
    ]
    return {f"{module}.{name.strip()}" for module, names in lines for name in names.split(",")}


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
