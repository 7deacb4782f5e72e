"""Hugging Face folders: loaded as transformers does, or refused in one sentence that names the file."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPTNeoXConfig, LlamaConfig

from evaluation.checkpoints.agreement import check_agreement, check_tokenizer_fits
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.inspect import describe
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, IncompleteCheckpoint
from tests.checkpoints.damage import config, damage
from tests.checkpoints.huggingface import NEOX, SIZES, logits, save_model
from tests.prefill.plans import make_plan
from tests.tables import cases


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hf")
    save_model(folder)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "hf"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("config", [LlamaConfig(**SIZES), GPTNeoXConfig(**NEOX)])
def test_loads_as_transformers_does(
    tmp_path: Path, dtype: torch.dtype, config: LlamaConfig | GPTNeoXConfig
) -> None:
    model = save_model(tmp_path, config, dtype)
    checkpoint = open_checkpoint(tmp_path)
    check_complete(checkpoint)
    assert checkpoint.kind == "huggingface"
    assert checkpoint.dtype == str(dtype).removeprefix("torch.")
    assert checkpoint.vocab_size == config.vocab_size
    loaded = load_model(checkpoint)
    assert loaded.dtype == dtype
    assert not loaded.training
    assert not any(value.requires_grad for value in loaded.parameters())
    assert torch.equal(logits(loaded), logits(model))
    facts = describe(checkpoint)
    json.dumps(facts)
    assert facts["parameters"] == sum(value.numel() for value in model.parameters())
    assert facts["model_class"] == type(model).__name__


def test_sharded_by_its_index(folder: Path) -> None:
    """An old file beside shards is refused: transformers would load it, whatever the index says."""
    save_model(folder / "new").save_pretrained(folder / "new", max_shard_size="20KB")
    (folder / "new/model.safetensors").unlink()
    for path in (folder / "new").glob("model*"):
        path.rename(folder / path.name)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: .* model\.safetensors\.index"):
        open_checkpoint(folder)
    (folder / "model.safetensors").unlink()
    checkpoint = open_checkpoint(folder)
    assert describe(checkpoint)["files"] > 1
    load_model(checkpoint)
    first, second, *_ = sorted(folder.glob("model-*.safetensors"))
    tensors = load_file(first)
    for changed, problem in (
        ({**tensors, "foreign": torch.ones(1)}, "holds"),
        ({"a": torch.ones(1)}, ""),
    ):
        save_file(changed, first)
        with pytest.raises(IncompleteCheckpoint, match=f"{first.name}: {problem}"):
            open_checkpoint(folder)
    save_file(tensors, first)
    second.write_bytes(second.read_bytes()[:-4])
    with pytest.raises(IncompleteCheckpoint, match=f"{second.name}: ends early"):
        open_checkpoint(folder)


@pytest.mark.parametrize(("line", "named"), cases("checkpoints/damage", "hugging_face_refused"))
def test_folders_that_are_refused(folder: Path, line: str, named: str) -> None:
    damage(folder, line)
    with pytest.raises(CheckpointError, match=named) as raised:
        load_model(open_checkpoint(folder))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("line", cases("checkpoints/damage", "hugging_face_harmless"))
def test_changes_that_compute_the_same(sound: Path, folder: Path, line: str) -> None:
    damage(folder, line)
    expected = logits(load_model(open_checkpoint(sound)))
    assert torch.equal(logits(load_model(open_checkpoint(folder))), expected)


def test_answers_end_by_all_configurations(folder: Path) -> None:
    config(folder, eos_token_id=[1, 7])
    (folder / "generation_config.json").write_text('{"eos_token_id": 9}')
    assert open_checkpoint(folder).end_tokens == {1, 7, 9}
    config(folder, eos_token_id=None)
    (folder / "generation_config.json").unlink()
    assert open_checkpoint(folder).end_tokens == set()


FITS = {
    "as many positions": ({"max_position_embeddings": 16}, None),
    "too few": ({"max_position_embeddings": 15}, r"15 tokens at most.*sequence_length: 15"),
    "too few by an old name": ({"n_positions": 8}, "8 tokens at most"),
    "of the text of a larger model": ({"text_config": {"max_position_embeddings": 4, "vocab_size": 60}},
        "4 tokens at most"),
    "not recorded": ({"max_position_embeddings": None}, None),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), FITS.values(), ids=FITS)
def test_the_sequence_fits_its_positions(
    folder: Path, changes: dict[str, object], expected: str | None
) -> None:
    config(folder, **changes)
    plan = make_plan(folder / "cache", Path("some/tokenizer"), sequence_length=16)
    checkpoint = open_checkpoint(folder)
    check_tokenizer_fits(checkpoint, 60)
    with pytest.raises(CheckpointError, match="60 rows, but the tokenizer uses ids up to 60"):
        check_tokenizer_fits(checkpoint, 61)
    if expected is None:
        check_agreement(plan, checkpoint)
        return
    with pytest.raises(CheckpointError, match=expected):
        check_agreement(plan, checkpoint)
