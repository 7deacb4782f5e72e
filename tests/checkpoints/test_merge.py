"""Means of checkpoints against plain arithmetic and a forward pass of our own; other models are refused."""

from pathlib import Path
from typing import Any

import pytest
import torch

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.merge import write_mean
from evaluation.errors import CheckpointError
from tests.checkpoints.nanotron import (
    TRAINING,
    Config,
    forward,
    llama,
    make_checkpoint,
    moe,
    qwen2,
)

MUP: Config = {**TRAINING, "model": {"init_method": {"use_mup": True}}}
IDS = torch.tensor([5, 17, 3, 9, 44, 2, 31, 8])


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_model(open_checkpoint(folder)).named_parameters())


@pytest.mark.parametrize(
    ("dtype", "weights"),
    [(torch.float32, (9, 1)), (torch.bfloat16, (1, 1, 1)), (torch.float64, (1, 1))],
)
def test_equal_ones_stay_the_same_to_the_bit(
    tmp_path: Path, dtype: torch.dtype, weights: tuple[float, ...]
) -> None:
    """Whatever their tp and pp."""
    folders = [tmp_path / str(number) for number in range(len(weights))]
    for number, folder in enumerate(folders):
        make_checkpoint(folder, llama(), tp=1 + number % 2, pp=2, dtype=dtype)
    write_mean(folders, weights, tmp_path / "out")
    ours, own = weights_of(tmp_path / "out"), weights_of(folders[0])
    assert ours.keys() == own.keys()
    for name, value in ours.items():
        assert value.dtype == dtype
        assert torch.equal(value, own[name])


@pytest.mark.parametrize(
    ("config", "training"),
    [
        (llama(), MUP),
        (qwen2(no_rope_layer=2, attention_bias=True), TRAINING),
        (qwen2(moe_config=moe()), TRAINING),
    ],
    ids=["muP", "no RoPE", "experts"],
)
def test_it_computes_what_the_averaged_weights_compute(
    tmp_path: Path, config: Config, training: Config
) -> None:
    shares = {"10": 1.0, "20": 2.0, "30": 1.0}
    tensors = [
        make_checkpoint(tmp_path / name, config, training=training, tp=1 + number % 2, seed=number)
        for number, name in enumerate(shares)
    ]
    write_mean([tmp_path / name for name in shares], [*shares.values()], tmp_path / "out")
    checkpoint = open_checkpoint(tmp_path / "out")
    check_complete(checkpoint)
    found = load_model(checkpoint)(IDS[None]).logits[0].double()
    mean = {
        name: sum(share / 4 * own[name].double() for share, own in zip(shares.values(), tensors, strict=True))
        for name in tensors[0]
    }  # fmt: skip
    expected = forward(mean, config, IDS, mup=training is MUP)  # type: ignore[arg-type]
    assert float((found - expected).norm() / expected.norm()) < 1e-5
    last = forward(tensors[-1], config, IDS, mup=training is MUP)
    assert float((found - last).norm() / last.norm()) > 0.1


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
