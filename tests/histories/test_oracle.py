"""What judges the histories notices what it is there for: a planted difference, and work done twice."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.histories.counting import write_count
from tests.histories.economy import Economy
from tests.histories.oracle import differences_of, snapshot, touched

STEP = Path("by_checkpoint/step_10")


def write_results(folder: Path, seconds: float) -> Path:
    """A small folder of results; `seconds` is all that may differ."""
    (folder / STEP).mkdir(parents=True)
    content = {"tasks": {"quiz": {"accuracy": 0.5, "made": f"in {seconds} s"}}, "seconds": seconds}
    (folder / STEP / "tier3_cf.json").write_text(json.dumps(content))
    (folder / "report.html").write_text(f"<dt>code</dt> <dd>{seconds}</dd>\n<p>met</p>\n")
    pq.write_table(pa.table({"step": [10, 20], "value": [0.5, 0.25]}), folder / "summary.parquet")
    (folder / "stage.log").write_text(f"{seconds} s")
    return folder


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    return write_results(tmp_path / "ours", 1.0), write_results(tmp_path / "fresh", 2.0)


def test_times_and_logs_are_no_difference(both: tuple[Path, Path]) -> None:
    assert list(differences_of(*both)) == []


def replaced(name: str, old: str, new: str) -> Callable[[Path], Any]:
    def fault(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return fault


FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a number in the last digit": (
        replaced(f"{STEP}/tier3_cf.json", "0.5", "0.5000000000000001"),
        f"differs: {STEP}/tier3_cf.json: line 4 ",
    ),
    "another verdict in a page": (
        replaced("report.html", "<p>met</p>", "<p>not met</p>"),
        "differs: report.html: line 2 ",
    ),
    "rows in another order": (
        lambda folder: pq.write_table(
            pq.read_table(folder / "summary.parquet").sort_by([("step", "descending")]),
            folder / "summary.parquet",
        ),
        "differs: summary.parquet: other rows",
    ),
    "half a table": (
        lambda folder: (folder / "summary.parquet").write_bytes(b"PAR1 and no more"),
        "differs: summary.parquet: not Parquet",
    ),
    "a file less": (lambda folder: (folder / "report.html").unlink(), "missing: report.html"),
    "a file more": (
        lambda folder: (folder / STEP / "tier2_ppl.json").write_text("{}"),
        f"left over: {STEP}/tier2_ppl.json",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_difference_is_named(both: tuple[Path, Path], name: str) -> None:
    fault, said = FAULTS[name]
    fault(both[0])
    found = list(differences_of(*both))
    assert len(found) == 1, found
    assert found[0].startswith(said)


def test_what_a_run_changed_is_named(both: tuple[Path, Path]) -> None:
    ours, _ = both
    states = snapshot(ours)
    assert touched(states, snapshot(ours)) == []
    replaced(f"{STEP}/tier3_cf.json", "0.5", "0.75")(ours)
    replaced("report.html", "met", "bad")(ours)
    (ours / "summary.parquet").unlink()
    (ours / "stage.log").write_text("another run")
    assert touched(states, snapshot(ours)) == [
        f"{STEP}/tier3_cf.json",
        "report.html",
        "summary.parquet",
    ]


@pytest.fixture
def economy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Economy:
    monkeypatch.setenv("HISTORIES_COUNTS", str(tmp_path / "counts.jsonl"))
    return Economy(tmp_path)


def asks(economy: Economy, *questions: str, state: str = "files", **how: bool) -> list[str]:
    """What a run that asks these questions of a checkpoint's files did in vain."""
    economy.before()
    write_count("tier3", "quiz", list(questions), state)
    model: Any = SimpleNamespace(config={"results": "results"})
    return list(economy.after(model, is_forced=True, **how))


def test_a_question_asked_twice_is_in_vain(economy: Economy) -> None:
    assert asks(economy, "a", "b") == []
    assert asks(economy, "b", "c", "a") == ["scored again: tier3 quiz, 2 questions"]
    assert asks(economy, "d") == []
    assert (economy.asked, economy.in_vain, economy.of_copies) == (6, 2, 0)


def test_other_files_may_be_asked_again_and_a_run_cut_short_may_lose_its_scores(
    economy: Economy,
) -> None:
    assert asks(economy, "a") == []
    assert asks(economy, "a", state="copied") == []
    assert asks(economy, "b", is_cut=True) == []
    assert asks(economy, "b") == []
    assert asks(economy, "b", "a") == ["scored again: tier3 quiz, 2 questions"]
    assert (economy.asked, economy.in_vain, economy.of_copies) == (6, 2, 1)
