"""A new step is an entry of the table and a function: rules, status and commands know it, the watcher too."""

import ast
import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.dependencies.evaluated import write_evaluated
from tests.histories.warm import run_python, well

STEP = """Step(
        name="toyjudge",
        scope="checkpoint",
        noun="judgements",
        help="judge a checkpoint's results",
        parents=(COLLECT,),
        parts=lambda place, records: {"toy": 1},
        outputs=lambda place: {"toyjudge": [place.folder / "toyjudge.json"]},
        make="evaluation.judging:judge",
    )"""


def with_step(module: str) -> str:
    """The module of the table with that step before deltas, which read it beside what they read already."""
    for call in ast.walk(ast.parse(module)):
        settings = {key.arg: key.value for key in getattr(call, "keywords", ())}
        if "name" in settings and ast.unparse(settings["name"]) == "STEP_DELTAS":
            deltas = ast.get_source_segment(module, call)
            parents = ast.get_source_segment(module, settings["parents"])
            assert deltas is not None
            reading = deltas.replace(f"parents={parents}", f'parents=(*{parents}, "toyjudge")', 1)
            assert reading != deltas
            return module.replace(deltas, f"{STEP},\n    {reading}", 1)
    raise AssertionError("the table has no step STEP_DELTAS")


def test_it_is_added_whatever_the_table_has() -> None:
    module = "_TABLE = (\n    Step(name=STEP_DELTAS, parents=(COLLECT, OTHER), noun='x'),\n)"
    assert "Step(name=STEP_DELTAS, parents=(*(COLLECT, OTHER), \"toyjudge\"), noun='x')" in (
        with_step(module)
    )


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has one step more."""
    root = tmp_path_factory.mktemp("toy")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("evaluation", "workflow", "locks"):
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", root)
    steps = root / "evaluation/dependencies/steps.py"
    steps.write_text(with_step(steps.read_text(encoding="utf-8")), encoding="utf-8")
    shutil.copy(Path(__file__).parent / "judging.py", root / "evaluation")
    return root


def test_everything_knows_the_step(package: Path, tmp_path: Path) -> None:
    config = write_evaluated(tmp_path)
    path = os.pathsep.join([str(package), str(ROOT)])
    words = ["-m", "tests.toy_step.proofs", str(config)]
    well(run_python(words, tmp_path, cold=True, PYTHONPATH=path, PYTHONSAFEPATH="1"))
