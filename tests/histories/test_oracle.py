"""What judges the histories notices what it is there for: a planted difference, and work done twice."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.histories.economy import Economy
from tests.histories.oracle import differences_of, snapshot, touched
from tests.histories.standin import write_count

TIER, PAGE, TABLE = "step_10/tier3_cf.json", "report.html", "summary.parquet"


def make(folder: Path, *, accuracy: float = 0.5, verdict: str = "met", values: int = 2) -> Path:
    """A small folder of results; what its name changes is no difference."""
    (folder / "step_10").mkdir(parents=True, exist_ok=True)
    content = {"quiz": {"accuracy": accuracy, "made": folder.name}, "seconds": len(folder.name)}
    (folder / TIER).write_text(json.dumps(content))
    (folder / PAGE).write_text(f"<dt>code</dt> <dd>{folder.name}</dd>\n<p>{verdict}</p>\n")
    pq.write_table(pa.table({"value": [0.5] * values}), folder / TABLE)
    (folder / "stage.log").write_text(folder.name)
    return folder


FAULTS: dict[str, Callable[[Path], Any]] = {
    f"differs: {TIER}: line 3 ": lambda folder: make(folder, accuracy=0.5000000000000001),
    f"differs: {PAGE}: line 2 ": lambda folder: make(folder, verdict="not met"),
    f"differs: {TABLE}: other rows": lambda folder: make(folder, values=3),
    f"missing: {PAGE}": lambda folder: (folder / PAGE).unlink(),
    "left over: tier2.json": lambda folder: (folder / "tier2.json").touch(),
}


@pytest.mark.parametrize("said", FAULTS)
def test_a_planted_difference_is_named_and_times_are_none(tmp_path: Path, said: str) -> None:
    ours, fresh = make(tmp_path / "ours"), make(tmp_path / "fresh")
    assert list(differences_of(ours, fresh)) == []
    before = snapshot(ours)
    FAULTS[said](ours)
    (found,) = differences_of(ours, fresh)
    assert found.startswith(said)
    assert said.split(": ")[1] in touched(before, snapshot(ours))


def test_a_question_asked_twice_is_in_vain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HISTORIES_COUNTS", str(tmp_path / "counts.jsonl"))
    world: Any = SimpleNamespace(folder=tmp_path, config={"results": "results"})
    economy = Economy(world)

    def asks(*questions: str, **how: bool) -> list[str]:
        economy.before()
        write_count("tier3", "quiz", list(questions))
        return economy.after(**how)

    assert asks("a", "b") == []
    assert asks("b", "c", "a") == ["scored again: tier3 quiz, 2 questions"]
    assert asks("d", is_cut=True) == []  # it may have lost its last scores
    assert asks("d") == []
    assert (economy.asked, economy.in_vain) == (7, 2)
