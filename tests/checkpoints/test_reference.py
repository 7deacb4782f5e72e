"""Every checkpoint that Nanotron wrote gives Nanotron's logits; and so does the tests' own model."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.inspect import describe
from evaluation.checkpoints.shards import read_parameters
from evaluation.checkpoints.verify import relative_errors
from tests.checkpoints.nanotron import forward
from tests.conftest import SHARED

INDEX_PATH = SHARED / "fixtures" / "nanotron" / "INDEX.json"
INDEX = json.loads(INDEX_PATH.read_text()) if INDEX_PATH.is_file() else {}


@pytest.mark.parametrize("name", sorted(INDEX))
def test_logits_of_nanotron(shared: Path, name: str) -> None:
    checkpoint = open_checkpoint(shared / "fixtures" / "nanotron" / name)
    reference = checkpoint.path / "reference_logits.safetensors"
    errors = relative_errors(checkpoint, reference)
    kinds = {"logits", "logits_causal"} & set(INDEX[name]["reference_keys"])
    assert errors.keys() == kinds
    assert max(errors.values()) < 1e-5


@pytest.mark.parametrize("name", sorted(INDEX))
def test_described_as_the_index_says(shared: Path, name: str) -> None:
    facts = describe(open_checkpoint(shared / "fixtures" / "nanotron" / name))
    known = INDEX[name]
    assert facts["model_class"] == known["hf_class_checked"]
    assert (facts["tp"], facts["pp"]) == (known["tp"], known["pp"])
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


@pytest.mark.parametrize("name", sorted(INDEX))
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
