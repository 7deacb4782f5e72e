"""Checkpoints that Nanotron wrote give Nanotron's logits."""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.inspect import describe
from evaluation.checkpoints.verify import relative_error
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
