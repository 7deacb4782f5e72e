"""The notebook of the documentation, run on results cell by cell."""

import ast
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.settings.plan import StagePlan
from tests.conftest import ROOT

NOTEBOOK = ROOT / "docs" / "first_look.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does: the value of its last line, if that is an expression."""
    *body, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        body, last = [*body, last], None  # type: ignore[list-item, assignment]
    exec(compile(ast.Module(body, []), str(NOTEBOOK), "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)


@pytest.fixture(scope="module")
def shown(reported: dict[str, StagePlan]) -> list[Any]:
    """What each code cell shows, in order."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    with contextlib.chdir(Path(reported["first"].config.results).parent):
        return [
            run_cell("".join(cell["source"]), names)
            for cell in cells
            if cell["cell_type"] == "code"
        ]


def test_every_cell_shows_something(shown: list[Any], reported: dict[str, StagePlan]) -> None:
    stages, advice, accuracy, flagged, questions = shown
    assert stages == [*reported]
    stored = json.loads((reported["second"].results / "recommendation.json").read_text())
    assert advice == {"second": (stored["verdict"], stored["step"])}
    assert list(accuracy.columns) == [10, 20, 30]
    assert set(flagged["flag"]) == {"better"}
    assert len(questions) == 8


def test_it_has_no_output_of_somebody() -> None:
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
