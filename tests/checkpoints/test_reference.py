"""Checkpoints that Nanotron wrote give Nanotron's logits."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.inspect import describe
from evaluation.checkpoints.shards import read_parameters
from evaluation.checkpoints.verify import relative_errors
from tests.checkpoints.nanotron import Config, forward, llama, make_checkpoint, qwen2
from tests.conftest import SHARED

INDEX_PATH = SHARED / "fixtures" / "nanotron" / "INDEX.json"
INDEX = json.loads(INDEX_PATH.read_text()) if INDEX_PATH.is_file() else {}


@pytest.mark.parametrize("name", sorted(INDEX))
def test_logits_of_nanotron(shared: Path, name: str) -> None:
    checkpoint, known = open_checkpoint(shared / "fixtures" / "nanotron" / name), INDEX[name]
    errors = relative_errors(checkpoint, checkpoint.path / "reference_logits.safetensors")
    assert errors.keys() == {"logits", "logits_causal"} & set(known["reference_keys"])
    assert max(errors.values()) < 1e-5
    facts = describe(checkpoint)
    assert facts["model_class"] == known["hf_class_checked"]
    assert facts["files"] == known["weight_files"]
    assert sorted(facts["tensors_by_dtype"]) == sorted(known["dtypes"])
    json.dumps(facts)


def merged(folder: Path) -> dict[str, torch.Tensor]:
    """Whole tensors, joined plainly from files and slices."""
    tensors = {}
    for name, parameter in read_parameters(folder).items():
        whole = torch.full(parameter.shape, torch.nan)
        for shard in parameter.shards:
            data = load_file(shard.path)["data"].float()
            for pair in shard.pairs:
                local = tuple(slice(*pair) for pair in pair.local)
                whole[tuple(slice(*pair) for pair in pair.whole)] = data[local]
        tensors[name] = whole
    return tensors


@pytest.mark.parametrize("name", [one for one in sorted(INDEX) if "starcoder2" not in one])
def test_own_forward_pass_agrees_with_nanotron(shared: Path, name: str) -> None:
    """The oracle of the other tests is right about every feature."""
    folder = shared / "fixtures" / "nanotron" / name / INDEX[name]["checkpoint_dir"]
    config = json.loads((folder / "model_config.json").read_text())
    reference = load_file(folder / "reference_logits.safetensors")
    positions = reference["position_ids"][1] if config.get("is_qwen2_config") else None
    logits = forward(
        merged(folder), config, reference["input_ids"][1], positions, mup="mup" in name
    )
    expected = reference["logits"][1].double()
    assert float((logits - expected).norm() / expected.norm()) < 1e-5


IDS = torch.tensor([[3, 17, 42, 5, 9, 59], [0, 1, 2, 3, 4, 5]])
POSITIONS = torch.tensor([[0, 1, 2, 0, 0, 1], [0, 1, 2, 3, 4, 5]])


def reference(folder: Path, config: Config, rows: int = 60) -> Path:
    """Write a checkpoint, and right logits of the first rows of its vocabulary for two rows of ids."""
    tensors = make_checkpoint(folder / "1", config, tp=2)
    heeded = POSITIONS if "is_qwen2_config" in config else [None, None]
    ids = IDS % rows
    content = {
        "input_ids": ids,
        "position_ids": POSITIONS,
        "logits": torch.stack(
            [forward(tensors, config, *row) for row in zip(ids, heeded, strict=True)]
        ),
        "logits_causal": torch.stack([forward(tensors, config, row) for row in ids]),
    }
    path = folder / "reference.safetensors"
    save_file({name: one[..., :rows].contiguous() for name, one in content.items()}, path)
    return path


@pytest.mark.parametrize(("config", "rows"), [(qwen2(), 60), (qwen2(), 50), (llama(), 60)])
def test_packed_and_causal(tmp_path: Path, config: Config, rows: int) -> None:
    """With and without the rows that pad the vocabulary; Llama ignores documents."""
    path = reference(tmp_path, config, rows)
    checkpoint = open_checkpoint(tmp_path / "1")
    errors = relative_errors(checkpoint, path)
    assert errors.keys() == {"logits", "logits_causal"}
    assert max(errors.values()) < 1e-5
    content = load_file(path)
    content["logits"] = content["logits"] * 2
    save_file(content, path)
    error = relative_errors(checkpoint, path)["logits"]
    assert error == pytest.approx(0.5, abs=1e-5)  # of the reference
