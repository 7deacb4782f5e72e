"""Merges against plain torch arithmetic, and themselves; what is no mean is refused by its key."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import Checkpoint, open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.locations import Merge
from evaluation.checkpoints.merge import open_location
from evaluation.checkpoints.save import write_merge
from evaluation.errors import CheckpointError, UnsupportedCheckpoint
from evaluation.settings.candidates import MergeRecipe
from tests.checkpoints.huggingface import save_model
from tests.checkpoints.nanotron import TRAINING, llama, make_checkpoint, moe, qwen2, rewrite
from tests.checkpoints.test_reference import merged
from tests.tables import cases


def opened(*members: tuple[Path, float]) -> Checkpoint:
    return open_location(Merge("m", members))


def weights_of(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    return dict(load_model(checkpoint).named_parameters())


def are_equal(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> bool:
    return ours.keys() == theirs.keys() and all(
        torch.equal(value, theirs[name]) and value.dtype == theirs[name].dtype
        for name, value in ours.items()
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.9, 0.1), (1 / 3, 1 / 3, 1 / 3)])
def test_a_checkpoint_merged_with_itself_stays_the_same_to_the_bit(
    tmp_path: Path, dtype: torch.dtype, weights: tuple[float, ...]
) -> None:
    """Copies of it under other tp and pp, as no merge names a folder twice."""
    members = []
    for number, weight in enumerate(weights):
        make_checkpoint(tmp_path / str(number), llama(), tp=1 + number % 2, pp=2, dtype=dtype)
        members.append((tmp_path / str(number), weight))
    merge = opened(*members)
    own = weights_of(open_checkpoint(tmp_path / "0"))
    assert are_equal(weights_of(merge), own)
    write_merge(merge, tmp_path / "out")
    assert are_equal(weights_of(open_checkpoint(tmp_path / "out")), own)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.25, 0.75), (0.9, 0.1)])
@pytest.mark.parametrize(
    "names", [("llama_tp1", "llama_tp2"), ("llama_pp2", "llama_tp2"), ("llama_tp2", "llama_tp1")]
)
def test_fixtures_of_nanotron_against_plain_arithmetic(
    shared: Path, tmp_path: Path, names: tuple[str, str], weights: tuple[float, float]
) -> None:
    """Another rank's layout, and weights that differ: the second one is shifted first."""
    folders = [tmp_path / name for name in names]
    for name, folder in zip(names, folders, strict=True):
        shutil.copytree(shared / "fixtures" / "nanotron" / name, folder)
    _shift(folders[1])
    write_merge(opened(*zip(folders, weights, strict=True)), tmp_path / "out")
    one, other, found = (merged(folder) for folder in (*folders, tmp_path / "out"))
    assert found.keys() == one.keys() == other.keys()
    for name, value in found.items():
        exact = weights[0] * one[name].double() + weights[1] * other[name].double()
        assert not torch.equal(one[name], other[name])
        torch.testing.assert_close(value.double(), exact, rtol=1e-6, atol=1e-7)


def _shift(folder: Path) -> None:
    for path in (folder / "model").rglob("*.safetensors"):
        data = load_file(path)["data"]
        rewrite(path, data.flip(0) * 0.5 + 0.01 * torch.arange(data.numel()).view_as(data).sin())


def test_bf16_members_are_weighted_in_float32_and_rounded_once(tmp_path: Path) -> None:
    shares = {"a": 0.3137, "b": 0.4519, "c": 0.2344}
    tensors = {
        name: make_checkpoint(tmp_path / name, llama(), dtype=torch.bfloat16, tp=tp, seed=seed)
        for name, tp, seed in (("a", 1, 1), ("b", 2, 2), ("c", 2, 3))
    }
    merge = opened(*((tmp_path / name, share) for name, share in shares.items()))
    assert merge.dtype == "bfloat16"
    assert merge.path == tmp_path / "b"  # of the largest weight
    write_merge(merge, tmp_path / "out")
    found, others = merged(tmp_path / "out"), 0
    for name, value in found.items():
        exact = sum(share * tensors[one][name].double() for one, share in shares.items())
        assert isinstance(exact, torch.Tensor)
        once = exact.to(torch.bfloat16).double()
        off = (value.double() - once).abs()
        assert float((off / once.abs().clamp_min(1e-3)).max()) <= 2**-7  # one place of bfloat16
        others += int((off > 0).sum())
    assert others / sum(value.numel() for value in found.values()) < 1e-3  # all but ties
    assert are_equal(weights_of(merge), weights_of(open_checkpoint(tmp_path / "out")))


def test_members_of_two_dtypes_are_written_in_float32(tmp_path: Path) -> None:
    for name, dtype in (("a", torch.float32), ("b", torch.bfloat16)):
        make_checkpoint(tmp_path / name, llama(), dtype=dtype)
    merge = opened((tmp_path / "a", 0.5), (tmp_path / "b", 0.5))
    write_merge(merge, tmp_path / "out")
    assert (merge.dtype, open_checkpoint(tmp_path / "out").dtype) == ("float32", "float32")


@pytest.mark.parametrize("config", [qwen2(moe_config=moe()), llama(rope_interleaved=True)])
def test_what_is_loaded_is_what_is_written(tmp_path: Path, config: dict[str, Any]) -> None:
    """Experts, routers in float32, and rows that change places."""
    for seed, name in enumerate("ab"):
        make_checkpoint(tmp_path / name, config, tp=1 + seed, dtype=torch.bfloat16, seed=seed)
    merge = opened((tmp_path / "a", 0.6), (tmp_path / "b", 0.4))
    write_merge(merge, tmp_path / "out")
    written = open_checkpoint(tmp_path / "out")
    check_complete(written)
    assert are_equal(weights_of(merge), weights_of(written))


def test_the_written_checkpoint_is_laid_out_like_its_main_member(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "a", llama(), tp=2, pp=2)
    make_checkpoint(tmp_path / "b", llama(), tp=1, seed=1)
    (tmp_path / "a" / "checkpoint_metadata.json").write_text('{"metas": {}}')
    write_merge(opened((tmp_path / "a", 0.6), (tmp_path / "b", 0.4)), tmp_path / "out")
    files = [
        sorted(p.relative_to(f) for p in f.rglob("*.*")) for f in (tmp_path / "a", tmp_path / "out")
    ]
    assert files[0] == files[1]
    assert not [path for path in tmp_path.iterdir() if path.name not in ("a", "b", "out")]


@pytest.mark.parametrize(
    ("changes", "key"),
    cases("checkpoints/tables", "other_models_are_refused_by_the_key_that_differs"),
)
def test_other_models_are_refused_by_the_key_that_differs(
    tmp_path: Path, changes: dict[str, Any], key: str
) -> None:
    make_checkpoint(tmp_path / "a", llama())
    make_checkpoint(tmp_path / "b", llama(**changes))
    with pytest.raises(CheckpointError, match=f"`{key}` is .* take one of them out of the merge m"):
        opened((tmp_path / "a", 0.6), (tmp_path / "b", 0.4))


def test_what_only_the_training_configuration_says_is_compared_too(tmp_path: Path) -> None:
    mup = {**TRAINING, "model": {"init_method": {"use_mup": True}}}
    make_checkpoint(tmp_path / "a", llama())
    make_checkpoint(tmp_path / "b", llama(), training=mup)
    with pytest.raises(CheckpointError, match="`mup` is True, but False in "):
        opened((tmp_path / "a", 0.6), (tmp_path / "b", 0.4))


def test_hugging_face_members_are_refused(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "a", llama())
    save_model(tmp_path / "b")
    with pytest.raises(UnsupportedCheckpoint, match="import it first with"):
        opened((tmp_path / "a", 0.6), (tmp_path / "b", 0.4))


@pytest.mark.parametrize(
    ("recipe", "sentence"), cases("checkpoints/tables", "recipes_that_are_none")
)
def test_recipes_that_are_none(recipe: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        MergeRecipe.model_validate(recipe)
