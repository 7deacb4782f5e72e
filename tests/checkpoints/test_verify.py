"""Comparing logits with a reference file."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.verify import relative_errors
from evaluation.errors import NonFiniteError
from tests.checkpoints.nanotron import forward, llama, make_checkpoint, qwen2, rewrite, shard_paths

IDS = torch.tensor([[3, 17, 42, 5, 9, 59], [0, 1, 2, 3, 4, 5]])
POSITIONS = torch.tensor([[0, 1, 2, 0, 0, 1], [0, 1, 2, 3, 4, 5]])


def reference(folder: Path) -> Path:
    """Right logits of qwen2() for two rows of packed documents."""
    tensors = make_checkpoint(folder / "1", qwen2(), tp=2)
    rows = zip(IDS, POSITIONS, strict=True)
    content = {
        "input_ids": IDS,
        "position_ids": POSITIONS,
        "logits": torch.stack([forward(tensors, qwen2(), *row) for row in rows]),
        "logits_causal": torch.stack([forward(tensors, qwen2(), row) for row in IDS]),
    }
    path = folder / "reference.safetensors"
    save_file(content, path)
    return path


def largest_error(folder: Path, path: Path) -> float:
    return max(relative_errors(open_checkpoint(folder), path).values())


def test_packed_and_causal(tmp_path: Path) -> None:
    path = reference(tmp_path)
    errors = relative_errors(open_checkpoint(tmp_path / "1"), path)
    assert errors.keys() == {"logits", "logits_causal"}
    assert max(errors.values()) < 1e-5
    content = load_file(path)
    content["logits"] = content["logits"] * 2
    save_file(content, path)
    assert largest_error(tmp_path / "1", path) == pytest.approx(0.5, abs=1e-5)  # of the reference


def test_llama_ignores_documents(tmp_path: Path) -> None:
    tensors = make_checkpoint(tmp_path / "1", llama())
    expected = torch.stack([forward(tensors, llama(), row) for row in IDS])
    path = tmp_path / "reference.safetensors"
    save_file({"input_ids": IDS, "position_ids": POSITIONS, "logits": expected}, path)
    assert largest_error(tmp_path / "1", path) < 1e-5


def test_reference_without_the_padded_vocabulary(tmp_path: Path) -> None:
    tensors = make_checkpoint(tmp_path / "1", qwen2())
    expected = torch.stack([forward(tensors, qwen2(), row) for row in IDS % 50])
    path = tmp_path / "reference.safetensors"
    save_file({"input_ids": IDS % 50, "logits": expected[..., :50].contiguous()}, path)
    assert largest_error(tmp_path / "1", path) < 1e-5


def test_nan_is_an_error(tmp_path: Path) -> None:
    path = reference(tmp_path)
    copy = Path(shutil.copytree(tmp_path / "1", tmp_path / "2"))
    name = "model.final_layer_norm.pp_block.weight"
    rewrite(shard_paths(copy, name)[0], torch.full((32,), torch.nan))
    with pytest.raises(NonFiniteError, match="NaN"):
        largest_error(copy, path)
