"""`verify --against nanotron`, with a stand-in for Nanotron and its GPU."""

import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from evaluation.__main__ import main
from evaluation.checkpoints import verify
from tests.checkpoints.huggingface import save_model
from tests.checkpoints.nanotron import TRAINING, llama, make_checkpoint, moe, qwen2
from tests.histories.warm import python_words
from tests.tools.conftest import Ended

HERE = Path(__file__).parent / "stand_in"
MUP = {**TRAINING, "model": {"init_method": {"use_mup": True}}}


@dataclass(frozen=True)
class Trial:
    """A checkpoint, few ids, and an interpreter whose Nanotron does what it is told."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def python(self, act: str) -> Path:
        path = self.folder / "environment" / "python"
        path.parent.mkdir(exist_ok=True)
        words = shlex.join([*python_words(), str(HERE / "run.py"), act])
        path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        path.chmod(0o755)
        return path

    def checkpoint(self, config: dict[str, Any] | None = None, **options: Any) -> Path:
        tensors = make_checkpoint(self.folder / "1", config or llama(), **options)
        whole = {name: one.contiguous() for name, one in tensors.items()}
        save_file(whole, self.folder / "whole.safetensors")
        return self.folder / "1"

    def few(self) -> str:
        """Ids, of which the second row has two documents."""
        ids = torch.tensor([[3, 17, 42, 5, 9, 59], [0, 1, 2, 3, 4, 5]])
        positions = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 0, 1, 2, 3]])
        save_file({"input_ids": ids, "position_ids": positions}, self.folder / "ids.safetensors")
        return f"--ids={self.folder / 'ids.safetensors'}"

    def verify(self, act: str, *more: str, folder: Path | None = None) -> Ended:
        """Verifies the checkpoint, which is made where no folder is given, on the few ids."""
        return self.run(folder or self.checkpoint(), self.python(act), self.few(), *more)

    def run(self, folder: Path, python: Path | None, *more: str) -> Ended:
        chosen = [f"--python={python}"] if python else []
        code = main(["verify", str(folder), "--against", "nanotron", *chosen, *more])
        return Ended(code, *self.capsys.readouterr())


@pytest.fixture
def trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Trial:
    return Trial(tmp_path, capsys)


@pytest.mark.parametrize(
    ("config", "options"),
    [
        (llama(qk_norm=False), {}),  # a key that means nothing
        (llama(tie_word_embeddings=True), {"tp": 2}),
        ({k: v for k, v in llama().items() if "rope" not in k}, {}),  # as before those keys
        (llama(), {"training": MUP}),
        (qwen2(), {"tp": 2, "pp": 2}),
        (qwen2(attention_bias=True, sliding_window_size=3), {}),
        (qwen2(_attn_implementation="llama3_ring_attention", ring_attn_heads_k_stride=1), {}),
        (qwen2(moe_config=moe()), {}),
    ],
)
def test_what_agrees(trial: Trial, config: dict[str, Any], options: dict[str, Any]) -> None:
    """Whatever it prints besides."""
    ended = trial.verify("noisy", folder=trial.checkpoint(config, **options))
    ended.check(0)
    assert "within the tolerance of 0.05" in ended.out
    assert ("each row as one document" in ended.out) == ("is_qwen2_config" in config)
    error = float(ended.out.split("relative L2 error: ")[1].split(",")[0])
    assert 1e-4 < error < 1e-2  # rounded to bfloat16


def test_random_ids_where_none_are_given(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_LENGTH", 12)
    folder, python = trial.checkpoint(qwen2()), trial.python("right")
    first, second = (trial.run(folder, python) for _ in range(2))
    first.check(0)
    assert "each row as one document" in first.out
    assert first.out == second.out  # the same ids every time


@pytest.mark.parametrize("act", ["other", "rope"])
def test_what_differs_ends_with_exit_1(trial: Trial, act: str) -> None:
    ended = trial.verify(act)
    ended.check(1)
    assert "more than the tolerance of 0.05" in ended.out
    assert ended.err == ""


def test_the_tolerance_is_heeded(trial: Trial) -> None:
    trial.verify("right", "--tolerance", "1e-5").check(1)
    trial.verify("other", "--tolerance", "9").check(0)


@pytest.mark.parametrize(
    ("act", "config", "told"),
    [
        ("flash_attn", llama(), "it has no flash_attn"),
        ("no GPU", llama(), "it sees no GPU"),
        ("die", llama(), "ended with code 9"),
        ("rubbish", llama(), "cannot be compared"),
        ("other ids", llama(), "other ids than those requested"),
        ("nan", llama(), "NaN or infinite"),
        ("right", llama(log_attn_probs=True), "does not know the key log_attn_probs"),
        ("old", qwen2(), "older than this checkpoint and has no Qwen2Config"),
    ],
)
def test_what_goes_wrong_over_there_is_a_sentence(
    trial: Trial, act: str, config: dict[str, Any], told: str
) -> None:
    ended = trial.verify(act, folder=trial.checkpoint(config))
    ended.check(1, told)
    assert ended.err.count("\n") == 1
    assert ended.out == ""
    assert "/tmp/nanotron-" not in ended.err


def test_one_that_hangs_is_ended(trial: Trial) -> None:
    start = time.monotonic()
    trial.verify("hang", "--limit", "1").check(1, "did not end within 1 s")
    assert time.monotonic() - start < 60
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(trial.folder) not in running.stdout


@pytest.mark.parametrize(
    ("name", "told"),
    [("absent", "no such program"), ("folder", "no such program"), ("text", "cannot be run")],
)
def test_interpreters_that_are_none(trial: Trial, name: str, told: str) -> None:
    (trial.folder / "folder").mkdir()
    (trial.folder / "text").write_text("not a program")
    (trial.folder / "text").chmod(0o755)
    trial.run(trial.checkpoint(), trial.folder / name, trial.few()).check(1, told)


def test_this_interpreter_has_no_nanotron(trial: Trial) -> None:
    ended = trial.run(trial.checkpoint(), None, trial.few())
    ended.check(1, f"{sys.executable} cannot run it, as it has no nanotron")


@pytest.mark.parametrize(
    ("tensors", "told"),
    [
        ({"input_ids": torch.full((2, 3), 60)}, "`input_ids` holds 60, but the embedding has 60"),
        ({"input_ids": torch.ones(2, 3).long(), "position_ids": torch.arange(6).view(2, 3)},
            "must begin with 0"),
    ],
)  # fmt: skip
def test_ids_that_do_not_fit(trial: Trial, tensors: dict[str, torch.Tensor], told: str) -> None:
    given = trial.folder / "given.safetensors"
    save_file(tensors, given)
    ended = trial.run(trial.checkpoint(), trial.python("die"), f"--ids={given}")
    ended.check(1, "given.safetensors", told)


def test_a_hugging_face_folder_is_none_of_nanotrons(trial: Trial) -> None:
    save_model(trial.folder / "hf")
    trial.run(trial.folder / "hf", trial.python("die")).check(1, "a Hugging Face folder")


@pytest.mark.parametrize("option", ["--python=x", "--ids=x", "--limit=3"])
def test_options_that_would_be_ignored(trial: Trial, option: str) -> None:
    assert main(["verify", str(trial.checkpoint()), "--reference", "r", option]) == 1
    assert "goes with --against nanotron" in trial.capsys.readouterr().err
