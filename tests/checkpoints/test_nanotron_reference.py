"""`verify --against nanotron`, with a stand-in for Nanotron's program (its own: test_real_nanotron.py)."""

import shlex
from pathlib import Path

import pytest

from evaluation.__main__ import main
from evaluation.checkpoints import verify
from tests.checkpoints.huggingface import save_model
from tests.checkpoints.nanotron import make_checkpoint, qwen2
from tests.histories.warm import python_words
from tests.tools.conftest import Ended

STAND_IN = Path(__file__).parent / "stand_in.py"


def ended(capsys: pytest.CaptureFixture[str], *words: object) -> Ended:
    code = main(["verify", *map(str, words)])
    return Ended(code, *capsys.readouterr())


@pytest.mark.parametrize(
    ("act", "code", "shown"),
    [
        ("agree", 0, "within the tolerance of 0.05"),
        ("differ", 1, "more than the tolerance of 0.05"),
        ("die", 1, "code 9"),
        ("nan", 1, "NaN or infinite"),
    ],
)
def test_what_the_program_may_do(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    act: str,
    code: int,
    shown: str,
) -> None:
    """Whatever it prints besides; the error is the rounding of bfloat16."""
    monkeypatch.setattr(verify, "_LENGTH", 9)
    make_checkpoint(tmp_path / "1", qwen2(), tp=2)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.join([*python_words(), str(STAND_IN), act])} "$@"\n')
    python.chmod(0o755)
    found = ended(capsys, tmp_path / "1", "--against", "nanotron", f"--python={python}")
    found.check(code)
    assert shown in found.out + found.err
    assert found.err.count("\n") == (act in ("die", "nan"))
    if not code:
        assert 1e-4 < float(found.out.split("relative L2 error: ")[1].split(",")[0]) < 1e-2


def test_what_nanotron_cannot_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path / "hf")
    ended(capsys, tmp_path / "hf", "--against", "nanotron").check(1, "not of Nanotron")
    make_checkpoint(tmp_path / "1", qwen2())
    ended(capsys, tmp_path / "1", "--against", "nanotron").check(1, "No module named 'nanotron'")
    words = (tmp_path / "1", "--reference", "r", "--python=python3")
    ended(capsys, *words).check(1, "goes with --against nanotron")
