"""When a checkpoint may be scored, and when what failed is tried again."""

import pytest

from evaluation.checkpoints.state import folder_state
from evaluation.checkpoints.subjects import step_subject
from evaluation.settings.planning import plan_stages
from evaluation.watching import attempts
from evaluation.watching.attempts import note_failure, read_failures
from evaluation.watching.work import look_twice
from tests.watching.conftest import Watched


def problem(watched: Watched, step: int) -> str | None:
    subject = step_subject(watched.watcher().plans["stage1"], step)
    ((_, _, found),) = look_twice([subject], 0.0)
    return found


def test_a_whole_one_and_what_is_none(watched: Watched) -> None:
    copy = watched.copy(10)
    (watched.checkpoints / "latest.txt").write_text("20")
    assert problem(watched, 10) is None
    assert "no such folder" in (problem(watched, 20) or "") or "no checkpoint" in (
        problem(watched, 20) or ""
    )
    next(copy.rglob("*tp-rank-1-of-2*")).unlink()
    assert "tp-rank" in (problem(watched, 10) or "")


def test_a_file_that_grows_as_we_look(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one that scoring does not read: its writer is still at work."""
    copy = watched.copy(10)
    (copy / "optimizer").mkdir()
    subject = step_subject(watched.watcher().plans["stage1"], 10)
    grow = lambda _: (copy / "optimizer" / "state.pt").write_bytes(b"x")  # noqa: E731
    monkeypatch.setattr("evaluation.watching.work.time.sleep", grow)
    assert look_twice([subject], 1.0) == [
        (subject, folder_state(copy), f"{copy}: is being written")
    ]


def test_waits_grow_and_end(watched: Watched) -> None:
    plan = plan_stages(watched.watcher().config)["stage1"]
    subject = step_subject(plan, 10)
    waits = [note_failure(subject, "a", "NaN", own=True).wait for _ in range(8)]
    assert waits[:3] == [900, 1800, 3600]
    assert waits[-1] == attempts.LONGEST_WAIT
    assert note_failure(subject, "b", "NaN", own=True).count == 1
    assert note_failure(subject, "b", "queue", own=False).wait == 60
    path = plan.results / ".watch" / "failed.json"
    path.write_text(path.read_text()[:-10])
    assert read_failures(plan.results) == {}
