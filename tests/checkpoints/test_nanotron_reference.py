"""`verify --against nanotron`, with a stand-in for Nanotron and its GPU."""

import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from evaluation.__main__ import main
from evaluation.checkpoints import nanotron_reference
from tests.checkpoints.nanotron import TRAINING, llama, make_checkpoint, moe, qwen2

HERE = Path(__file__).parent / "stand_in"
MUP = {**TRAINING, "model": {"init_method": {"use_mup": True}}}

Installed = Callable[[str], Path]


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """Writes an interpreter whose Nanotron does what it is told."""

    def write(act: str) -> Path:
        path = tmp_path / "environment" / "python"
        path.parent.mkdir(exist_ok=True)
        words = shlex.join([sys.executable, str(HERE / "run.py"), act])
        path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        path.chmod(0o755)
        return path

    return write


def checkpoint(folder: Path, config: dict[str, Any] | None = None, **options: Any) -> Path:
    tensors = make_checkpoint(folder / "1", config or llama(), **options)
    save_file(
        {name: one.contiguous() for name, one in tensors.items()}, folder / "whole.safetensors"
    )
    return folder / "1"


def ids_file(path: Path, ids: torch.Tensor, positions: torch.Tensor | None = None) -> Path:
    tensors = {"input_ids": ids} | ({} if positions is None else {"position_ids": positions})
    save_file(tensors, path)
    return path


def verify(folder: Path, python: Path, *more: str) -> int:
    return main(["verify", str(folder), "--against", "nanotron", "--python", str(python), *more])


@pytest.fixture
def few(tmp_path: Path) -> list[str]:
    """Few ids, of which the second row has two documents."""
    ids = torch.tensor([[3, 17, 42, 5, 9, 59], [0, 1, 2, 3, 4, 5]])
    positions = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 0, 1, 2, 3]])
    return ["--ids", str(ids_file(tmp_path / "ids.safetensors", ids, positions))]


@pytest.mark.parametrize(
    ("config", "options"),
    [
        (llama(), {}),
        (llama(tie_word_embeddings=True), {"tp": 2}),
        (llama(rope_interleaved=True), {}),
        ({k: v for k, v in llama().items() if "rope" not in k}, {}),  # as before those keys
        (llama(), {"training": MUP}),
        (qwen2(), {"tp": 2, "pp": 2}),
        (qwen2(attention_bias=True, sliding_window_size=3), {}),
        (qwen2(_attn_implementation="llama3_ring_attention", ring_attn_heads_k_stride=1), {}),
        (qwen2(moe_config=moe()), {}),
        (qwen2(no_rope_layer=2), {}),
    ],
)
def test_what_agrees(
    config: dict[str, Any],
    options: dict[str, Any],
    tmp_path: Path,
    installed: Installed,
    few: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert verify(checkpoint(tmp_path, config, **options), installed("right"), *few) == 0
    said = capsys.readouterr().out
    assert "within the tolerance of 0.05" in said
    assert ("each row as one document" in said) == ("is_qwen2_config" in config)
    error = float(said.split("relative L2 error: ")[1].split(",")[0])
    assert 1e-4 < error < 1e-2  # rounded to bfloat16


def test_random_ids_where_none_are_given(
    tmp_path: Path, installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nanotron_reference, "LENGTH", 12)
    folder = checkpoint(tmp_path, qwen2())
    assert verify(folder, installed("right")) == 0
    ids = nanotron_reference.random_ids(60)
    assert ids["input_ids"].shape == (4, 12)
    assert (ids["position_ids"] == 0).sum(1).tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize("act", ["other", "rope"])
def test_what_differs_ends_with_exit_1(
    act: str,
    tmp_path: Path,
    installed: Installed,
    few: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert verify(checkpoint(tmp_path), installed(act), *few) == 1
    said = capsys.readouterr()
    assert "more than the tolerance of 0.05" in said.out
    assert said.err == ""


def test_the_tolerance_is_heeded(tmp_path: Path, installed: Installed, few: list[str]) -> None:
    folder = checkpoint(tmp_path)
    assert verify(folder, installed("right"), *few, "--tolerance", "1e-5") == 1
    assert verify(folder, installed("other"), *few, "--tolerance", "9") == 0


def test_what_it_prints_does_not_matter(
    tmp_path: Path, installed: Installed, few: list[str]
) -> None:
    assert verify(checkpoint(tmp_path), installed("noisy"), *few) == 0


@pytest.mark.parametrize(
    ("act", "told"),
    [
        ("nanotron", "it has no nanotron"),
        ("flash_attn", "it has no flash_attn"),
        ("no GPU", "it sees no GPU"),
        ("crash", "an illegal memory access"),
        ("die", "ended with code 9"),
        ("nothing", "gave no logits"),
        ("rubbish", "cannot be compared"),
        ("other ids", "other ids than those asked for"),
        ("nan", "NaN or infinite"),
        ("fewer words", "logits of [59] words, not 60"),
        ("endless file", "1,048,576 MB into"),
        ("a hole", "a file of 1,048,576 MB"),
        ("refuses without a word", "it did not say why"),
    ],
)
def test_what_goes_wrong_over_there_is_a_sentence(
    act: str,
    told: str,
    tmp_path: Path,
    installed: Installed,
    few: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert verify(checkpoint(tmp_path), installed(act), *few) == 1
    said = capsys.readouterr()
    assert told in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert "/tmp/nanotron-" not in said.err


def test_one_that_hangs_is_ended(
    tmp_path: Path, installed: Installed, few: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    start = time.monotonic()
    assert verify(checkpoint(tmp_path), installed("hang"), *few, "--limit", "1") == 1
    assert "did not end within 1 s" in capsys.readouterr().err
    assert time.monotonic() - start < 60
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in running.stdout


def test_one_that_takes_all_memory_is_ended(
    tmp_path: Path,
    installed: Installed,
    few: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nanotron_reference, "LEAST_MEMORY", 1 << 60)
    assert verify(checkpoint(tmp_path), installed("hang"), *few) == 1
    assert "MB of memory and was stopped" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("act", "config", "told"),
    [
        ("right", llama(log_attn_probs=True), "does not know the key log_attn_probs"),
        ("right", qwen2(dtype="bfloat16"), "does not know the key dtype"),
        ("old", qwen2(), "older than this checkpoint and has no Qwen2Config"),
    ],
)
def test_a_nanotron_that_does_not_know_the_model(
    act: str,
    config: dict[str, Any],
    told: str,
    tmp_path: Path,
    installed: Installed,
    few: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert verify(checkpoint(tmp_path, config), installed(act), *few) == 1
    assert told in capsys.readouterr().err


def test_a_key_that_means_nothing_is_left_out(
    tmp_path: Path, installed: Installed, few: list[str]
) -> None:
    assert verify(checkpoint(tmp_path, llama(qk_norm=False)), installed("right"), *few) == 0


@pytest.mark.parametrize(
    ("name", "told"),
    [("absent", "no such program"), ("folder", "no such program"), ("text", "cannot be run")],
)
def test_interpreters_that_are_none(
    name: str, told: str, tmp_path: Path, few: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("not a program")
    (tmp_path / "text").chmod(0o755)
    assert verify(checkpoint(tmp_path), tmp_path / name, *few) == 1
    assert told in capsys.readouterr().err


def test_this_interpreter_has_no_nanotron(
    tmp_path: Path, few: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = checkpoint(tmp_path)
    assert main(["verify", str(folder), "--against", "nanotron", *few]) == 1
    assert f"{sys.executable} cannot run it, as it has no nanotron" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ids", "positions", "told"),
    [
        (torch.ones(2, 3), None, "needs `input_ids`"),
        (
            torch.full((2, 3), 60),
            None,
            "given.safetensors: `input_ids` holds 60, but the embedding has 60",
        ),
        (torch.full((2, 3), -1), None, "negative id"),
        (torch.ones(2, 3).long(), torch.ones(2, 4).long(), "in the shape of `input_ids`"),
        (torch.ones(2, 3).long(), torch.arange(6).view(2, 3), "must begin with 0"),
    ],
)
def test_ids_that_do_not_fit(
    ids: torch.Tensor,
    positions: torch.Tensor | None,
    told: str,
    tmp_path: Path,
    installed: Installed,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ids_file(tmp_path / "given.safetensors", ids, positions)
    assert verify(checkpoint(tmp_path), installed("die"), "--ids", str(given)) == 1
    assert told in capsys.readouterr().err


def test_a_hugging_face_folder_is_none_of_nanotrons(
    tmp_path: Path, installed: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=20,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(tmp_path / "hf")
    assert verify(tmp_path / "hf", installed("die")) == 1
    assert "a Hugging Face folder" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--python=x", "--ids=x", "--limit=3"])
def test_options_that_would_be_ignored(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = checkpoint(tmp_path)
    assert main(["verify", str(folder), "--reference", "r", option]) == 1
    assert "goes with --against nanotron" in capsys.readouterr().err


def test_a_gpu_that_is_too_small_leaves_it_to_the_cpu(
    tmp_path: Path, installed: Installed, few: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    real = nanotron_reference.relative_errors

    def errors(one: Any, written: Path, *, device: str = "cpu") -> dict[str, float]:
        asked.append(device)
        if device == "cuda":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(one, written)

    monkeypatch.setattr(nanotron_reference, "relative_errors", errors)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert verify(checkpoint(tmp_path), installed("right"), *few) == 0
    assert asked == ["cuda", "cpu"]
