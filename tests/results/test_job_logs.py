"""How far a job is, from the bars that it has written into its log."""

from pathlib import Path

import pytest

from evaluation.progress import progress
from evaluation.results.job_logs import is_running, job_progress


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
    assert found is not None
    assert found.startswith("web: 25 %, 100/400, ")
    assert found.endswith(" left")
    assert is_running(log)


@pytest.mark.parametrize("text", ["", "12:00 INFO 45% of | something\n", "web: no bar\n"])
def test_a_log_without_a_bar_tells_no_progress(tmp_path: Path, text: str) -> None:
    (tmp_path / "job.log").write_text(text, encoding="utf-8")
    assert job_progress(tmp_path / "job.log") is None
    assert job_progress(tmp_path / "none.log") is None
