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

STEP = Path("by_checkpoint/step_10")


@pytest.fixture
def both(tmp_path: Path) -> list[Path]:
    """Two small folders of results, of which only times differ."""
    folders = [tmp_path / name for name in ("ours", "fresh")]
    for seconds, folder in enumerate(folders):
        (folder / STEP).mkdir(parents=True)
        tasks = {"quiz": {"accuracy": 0.5, "made": f"in {seconds} s"}}
        content = {"tasks": tasks, "seconds": seconds}
        (folder / STEP / "tier3_cf.json").write_text(json.dumps(content))
        (folder / "report.html").write_text(f"<dt>code</dt> <dd>{seconds}</dd>\n<p>met</p>\n")
        pq.write_table(pa.table({"value": [0.5, 0.25]}), folder / "summary.parquet")
        (folder / "stage.log").write_text(f"{seconds} s")
    return folders


def replaced(name: str, old: str, new: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_text((folder / name).read_text().replace(old, new))


FAULTS: dict[str, Callable[[Path], Any]] = {
    f"differs: {STEP}/tier3_cf.json: line 4 ": replaced(
        f"{STEP}/tier3_cf.json", "0.5", "0.5000000000000001"
    ),
    "differs: report.html: line 2 ": replaced("report.html", "met", "not met"),
    "differs: summary.parquet: other rows": lambda folder: pq.write_table(
        pa.table({"value": [0.25, 0.5]}), folder / "summary.parquet"
    ),
    "missing: report.html": lambda folder: (folder / "report.html").unlink(),
    f"left over: {STEP}/tier2.json": lambda folder: (folder / STEP / "tier2.json").touch(),
}


@pytest.mark.parametrize("said", FAULTS)
def test_a_planted_difference_is_named_and_times_are_none(both: list[Path], said: str) -> None:
    assert list(differences_of(*both)) == []
    before = snapshot(both[0])
    FAULTS[said](both[0])
    (found,) = differences_of(*both)
    assert found.startswith(said)
    (name,) = touched(before, snapshot(both[0]))
    assert name in said


def test_a_question_asked_twice_of_the_same_files_is_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HISTORIES_COUNTS", str(tmp_path / "counts.jsonl"))
    world: Any = SimpleNamespace(folder=tmp_path, config={"results": "results"})
    economy = Economy(world)

    def asks(*questions: str, state: str = "files", **how: bool) -> list[str]:
        economy.before()
        write_count("tier3", "quiz", list(questions), state)
        return list(economy.after(**how))

    assert asks("a", "b") == []
    assert asks("b", "c", "a") == ["scored again: tier3 quiz, 2 questions"]
    assert asks("a", state="copied") == []
    assert asks("d", is_cut=True) == []  # it may have lost its last scores
    assert asks("d") == []
    assert (economy.asked, economy.in_vain, economy.of_copies) == (8, 2, 1)
