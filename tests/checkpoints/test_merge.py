"""Means of checkpoints against plain arithmetic; other models are refused."""

from pathlib import Path
from typing import Any

import pytest
import torch

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.merge import write_mean
from evaluation.errors import CheckpointError
from tests.checkpoints.nanotron import Config, llama, make_checkpoint, moe, qwen2


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_model(open_checkpoint(folder)).named_parameters())


@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        (llama(), torch.float64),
        (llama(tie_word_embeddings=True), torch.bfloat16),
        (qwen2(no_rope_layer=2, attention_bias=True), torch.float32),
        (qwen2(moe_config=moe()), torch.float32),
    ],
)
def test_weights_are_averaged(tmp_path: Path, config: Config, dtype: torch.dtype) -> None:
    """Whatever their tp and pp; equal ones stay the same to the bit."""
    folders = [tmp_path / name for name in ("10", "20", "30")]
    for number, folder in enumerate(folders):
        make_checkpoint(folder, config, tp=1 + number % 2, pp=2, dtype=dtype, seed=number)
    write_mean(folders, [1, 2, 1], tmp_path / "means/mean")
    check_complete(open_checkpoint(tmp_path / "means/mean"))
    one, two, three = map(weights_of, folders)
    mean = weights_of(tmp_path / "means/mean")
    assert mean.keys() == one.keys()
    for name, value in mean.items():
        assert value.dtype == one[name].dtype
        exact = (one[name].double() + 2 * two[name].double() + three[name].double()) / 4
        torch.testing.assert_close(value, exact.to(value.dtype))
    write_mean([folders[0]] * 3, [9, 1, 1], tmp_path / "equal")
    for name, value in weights_of(tmp_path / "equal").items():
        assert torch.equal(value, one[name])


@pytest.mark.parametrize("key", ["hidden_size", "tie_word_embeddings"])
def test_other_models_are_refused_by_the_key_that_differs(tmp_path: Path, key: str) -> None:
    make_checkpoint(tmp_path / "a", llama(**{key: 64 if key == "hidden_size" else True}))
    make_checkpoint(tmp_path / "b", llama())
    with pytest.raises(CheckpointError, match=f"/a: another model than .*/b, by `{key}`"):
        write_mean([tmp_path / "a", tmp_path / "b"], [1, 1], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten_or_left_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        make_checkpoint(tmp_path / name, llama())
    pair = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(CheckpointError, match="is there already"):
        write_mean(pair, [1, 1], pair[0])

    def fail(model: Any, folder: Path) -> None:
        folder.mkdir()
        (folder / "config.json").touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("transformers.PreTrainedModel.save_pretrained", fail)
    with pytest.raises(CheckpointError, match="No space left on device"):
        write_mean(pair, [1, 1], tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
