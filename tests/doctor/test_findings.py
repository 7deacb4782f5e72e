"""One screen, however much is wrong."""

import pytest

from evaluation.doctor.findings import Check, Finding, screen, worst


def broken(number: int) -> Finding:
    path = f"/ckpts/{number}/model/x_tp-rank-0-of-2.safetensors"
    return Finding(
        "fault", f"stage1/{number}", f"{path}: ends early ({number} bytes); wait, or copy it again"
    )


def test_many_of_one_kind_are_one_paragraph() -> None:
    text = screen([Check("checkpoints", "300 to score", tuple(map(broken, range(300))))])
    assert len(text.splitlines()) == 4
    assert "300 alike: stage1/0, stage1/1" in text
    assert "and 294 more" in text
    assert "/ckpts/0/model" in text


def test_different_kinds_have_a_sentence_each_up_to_a_limit() -> None:
    findings = [Finding("fault", f"s{n}", f"x: bad; do {word}") for n, word in enumerate("abcdef")]
    text = screen([Check("caches", "6", tuple(findings))])
    assert "do d" in text
    assert "do e" not in text
    assert "2 more findings of other kinds" in text


def test_faults_come_before_warnings_and_decide() -> None:
    mixed = Check("a", "", (Finding("warning", "", "w; x"), Finding("fault", "", "f; y")))
    text = screen([mixed, Check("b", "fine")])
    assert text.index("fault: a") < text.index("warning: a")
    assert worst([mixed, Check("b", "fine")]) == "fault"
    assert worst([Check("b", "fine")]) == "ok"
    assert worst([mixed.as_warning()]) == "warning"


def test_a_long_summary_is_cut_to_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [Check("a", "x" * 500)]
    assert "x" * 500 in screen(checks)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert {len(line) for line in screen(checks).splitlines()} == {80}
