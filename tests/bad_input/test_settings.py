"""Any change of right settings: they can still be planned, or each mistake is one line."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.errors import ConfigError
from evaluation.prefill.questions import Recipe
from evaluation.prefill.task_prompts import PromptRecipe
from evaluation.settings.config import load_config
from evaluation.settings.generation import GenerationTask
from evaluation.settings.planning import plan_stages
from evaluation.settings.sources import Task
from evaluation.version import SUITES
from tests.bad_input.mutations import damaged, mutated, written
from tests.tables import table

TREES: dict[str, Any] = table("bad_input/right")
SHIPPED = {path.stem: yaml.safe_load(path.read_text()) for path in SUITES.glob("*.yaml")}
COMPILED = r"(slices|tasks|generation_tasks)\.[\w.-]+: not a Jinja2"
"""Begins a line about a template of a stage's suites, which prefill names by its item."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where relative paths of the configuration are."""
    folder = tmp_path_factory.mktemp("settings")
    for place in ("tokenizer", "data", "ckpts/one/10", "ckpts/one/20", "ckpts/two/5"):
        (folder / place).mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


def said_of(folder: Path, trees: dict[str, Any]) -> list[str]:
    """What is wrong with files, by their names, of trees or bytes; nothing is written."""
    shutil.rmtree(folder / "suites", ignore_errors=True)
    (folder / "suites").mkdir()
    files = {
        name: tree if isinstance(tree, bytes) else written(tree).encode()
        for name, tree in trees.items()
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    before = sorted(folder.rglob("*"))
    said = []
    try:
        for plan in plan_stages(load_config("config.yaml")).values():
            for name, task in plan.suite.tasks.items():
                _ = Recipe(name, task) if isinstance(task, Task) else None
            for name, asked in plan.suite.generation_tasks.items():
                _ = PromptRecipe(name, asked) if isinstance(asked, GenerationTask) else None
    except ConfigError as error:
        said = str(error).split("\n")
    assert sorted(folder.rglob("*")) == before
    return said


def judge(said: list[str], trees: dict[str, Any]) -> None:
    """Each line names a file, or the template of an item."""
    for line in said:
        assert line.startswith(tuple(f"{name}: " for name in trees)) or re.match(COMPILED, line)
        assert "Traceback" not in line


def test_the_settings_are_right(folder: Path) -> None:
    assert said_of(folder, TREES) == []


@settings(max_examples=150)
@given(data=st.data())
def test_a_configuration_and_suites(folder: Path, data: st.DataObject) -> None:
    trees = dict(TREES)
    wrong = data.draw(st.sampled_from(["config.yaml", *trees]))
    trees[wrong] = data.draw(mutated(trees[wrong]))
    judge(said_of(folder, trees), trees)


@settings(max_examples=100)
@given(data=st.data())
def test_a_shipped_suite(folder: Path, data: st.DataObject) -> None:
    """Of many probes a few, so that each has its turn."""
    name = data.draw(st.sampled_from(sorted(SHIPPED)))
    suite = dict(SHIPPED[name])
    if "probes" in suite:
        some = data.draw(st.sets(st.sampled_from(sorted(suite["probes"])), min_size=1, max_size=3))
        suite["probes"] = {key: suite["probes"][key] for key in sorted(some)}
    stage = {"checkpoints": "ckpts/one", "steps": [10], "suites": [name]}
    config = {**TREES["config.yaml"], "stages": {"one": stage}}
    trees = {**TREES, "config.yaml": config, f"suites/{name}.yaml": data.draw(mutated(suite))}
    judge(said_of(folder, trees), trees)


@settings(max_examples=50)
@given(data=st.data())
def test_bytes_of_a_file(folder: Path, data: st.DataObject) -> None:
    trees = dict(TREES)
    wrong = data.draw(st.sampled_from(sorted(trees)))
    trees[wrong] = data.draw(damaged(written(trees[wrong]).encode()))
    judge(said_of(folder, trees), trees)
