"""`verify --against nanotron`, with a stand-in for Nanotron's program (its own: test_real_nanotron.py)."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import save_file

from evaluation.__main__ import main
from evaluation.checkpoints import verify
from tests.checkpoints.huggingface import save_model
from tests.checkpoints.nanotron import TRAINING, Config, llama, make_checkpoint, moe, qwen2
from tests.histories.warm import python_words
from tests.tools.conftest import Ended

STAND_IN = Path(__file__).parent / "stand_in.py"
MUP = {**TRAINING, "model": {"init_method": {"use_mup": True}}}


@pytest.fixture(autouse=True)
def _few_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_LENGTH", 9)


def python_that(act: str, folder: Path) -> Path:
    """An interpreter whose Nanotron does what it is told."""
    path = folder / "python"
    words = shlex.join([*python_words(), str(STAND_IN), act])
    path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    path.chmod(0o755)
    return path


def ended(
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    act: str,
    config: Config | None = None,
    **options: Any,
) -> Ended:
    """Verify a checkpoint against the stand-in."""
    tensors = make_checkpoint(folder / "1", config or llama(), **options)
    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(whole, folder / "whole.safetensors")
    python = f"--python={python_that(act, folder)}"
    code = main(["verify", str(folder / "1"), "--against", "nanotron", python])
    return Ended(code, *capsys.readouterr())


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ({k: v for k, v in llama().items() if "rope" not in k}, {"training": MUP, "tp": 2}),
        (qwen2(moe_config=moe()), {}),
    ],
)
def test_what_agrees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], config: Config, options: dict[str, Any]
) -> None:
    """Whatever it prints besides; the error is the rounding of bfloat16."""
    found = ended(capsys, tmp_path, "noisy", config, **options)
    found.check(0)
    error = float(found.out.split("relative L2 error: ")[1].split(",")[0])
    assert 1e-4 < error < 1e-2


@pytest.mark.parametrize(
    ("act", "told"),
    [("rope", "more than the tolerance of 0.05"), ("die", "code 9"), ("nan", "NaN or infinite")],
)
def test_what_differs_or_goes_wrong_ends_with_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], act: str, told: str
) -> None:
    found = ended(capsys, tmp_path, act)
    found.check(1)
    assert told in found.out + found.err
    assert found.err.count("\n") == (act != "rope")


def test_what_nanotron_cannot_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path / "hf")
    words = ["verify", str(tmp_path / "hf"), "--against", "nanotron"]
    assert main(words) == 1
    assert "not of Nanotron" in capsys.readouterr().err
    make_checkpoint(tmp_path / "1", llama())
    words[1] = str(tmp_path / "1")
    assert main([*words, f"--python={tmp_path}"]) == 1
    assert "wrote no logits" in capsys.readouterr().err
    assert main(words) == 1  # by this interpreter
    assert "No module named 'nanotron'" in capsys.readouterr().err
    assert main([*words[:2], "--reference", "r", f"--python={sys.executable}"]) == 1
    assert "goes with --against nanotron" in capsys.readouterr().err
