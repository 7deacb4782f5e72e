"""Checkpoints that Nanotron wrote give Nanotron's logits."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.inspect import describe
from evaluation.checkpoints.shards import read_parameters
from evaluation.checkpoints.verify import relative_error
from tests.checkpoints.nanotron import forward
from tests.conftest import SHARED

INDEX_PATH = SHARED / "fixtures" / "nanotron" / "INDEX.json"
INDEX = json.loads(INDEX_PATH.read_text()) if INDEX_PATH.is_file() else {}


@pytest.mark.parametrize("name", sorted(INDEX))
def test_logits_of_nanotron(shared: Path, tmp_path: Path, name: str) -> None:
    """Packed, and each row as one document; errors are relative to the reference."""
    checkpoint, known = open_checkpoint(shared / "fixtures" / "nanotron" / name), INDEX[name]
    stored = checkpoint.path / "reference_logits.safetensors"
    assert relative_error(checkpoint, stored) < 1e-5
    tensors, path = load_file(stored), tmp_path / "reference.safetensors"
    causal = tensors.get("logits_causal", tensors["logits"])
    for factor, error in ((1, 0), (2, 0.5)):
        save_file({"input_ids": tensors["input_ids"], "logits": factor * causal}, path)
        assert relative_error(checkpoint, path) == pytest.approx(error, abs=1e-5)
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
