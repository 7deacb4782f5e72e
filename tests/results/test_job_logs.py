"""How far a job is, from the bars that it has written into its log."""

import logging
import re
from pathlib import Path

import pytest

from evaluation.progress import count_answers, progress
from evaluation.results.job_logs import is_running, job_progress
from evaluation.scoring.session import ITEM


def test_a_bar_in_a_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "job.log"
    with open(log, "w", encoding="utf-8") as file:
        file.write("12:00 INFO loads\n")
        monkeypatch.setattr("sys.stderr", file)
        with progress("web", 400, "tok") as bar:
            bar.update(100)
            bar.refresh()
            file.flush()
            found = job_progress(log)
    assert found.startswith("web: 25 %, 100/400, ")
    assert re.search(r" left, until \d\d:\d\d$", found)
    assert is_running(log)


def test_the_item_in_work_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a job logs it; a bar of an item before it is none of it."""
    log = tmp_path / "job.log"
    with open(log, "w", encoding="utf-8") as file:
        monkeypatch.setattr("sys.stderr", file)
        handler = logging.StreamHandler(file)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
        for number, name in ((1, "web"), (2, "sums")):
            record = logging.LogRecord("x", logging.INFO, "", 0, ITEM, (number, 3, name), None)
            handler.emit(record)
            assert job_progress(log) == f"item {number} of 3, {name}"
            with progress("answers", 4, "answer") as bar:
                count_answers(bar, [500, 300])
                bar.refresh()
                file.flush()
                found = job_progress(log)
    assert found is not None
    assert found.startswith("item 2 of 3, sums: 50 %, 2.00/4.00, ")
    assert re.search(r"answer/?s?.*, \d+tok/s, ", found)


@pytest.mark.parametrize("text", ["", "12:00 INFO 45% of | something\n", "web: no bar\n"])
def test_a_log_without_a_bar_tells_no_progress(tmp_path: Path, text: str) -> None:
    (tmp_path / "job.log").write_text(text)
    assert job_progress(tmp_path / "job.log") is None
    assert job_progress(tmp_path / "none.log") is None
