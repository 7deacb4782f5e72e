"""Regions of shards: any exact partition merges, and anything else is refused."""

import itertools
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from evaluation.checkpoints.nanotron_classes.base import Target, TensorSource
from evaluation.checkpoints.shards import Slices, coverage_problem, read_parameters
from evaluation.checkpoints.weights import load_weights
from evaluation.errors import UnsupportedCheckpoint


def written(box: Slices) -> str:
    return "|".join(f"{start},{stop},None" for start, stop in box)


def intervals(size: int, cuts: set[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise(sorted({0, size, *(cut % size for cut in cuts)})))


AXES = st.lists(
    st.tuples(st.integers(1, 12), st.sets(st.integers(0, 11), max_size=3)), min_size=1, max_size=3
)


@settings(max_examples=60)
@given(data=st.data())
def test_partitions_are_covered_and_their_damage_is_not(data: st.DataObject) -> None:
    axes = data.draw(AXES)
    shape = tuple(size for size, _ in axes)
    boxes: list[Slices] = [*itertools.product(*(intervals(*axis) for axis in axes))]
    assert coverage_problem(boxes, shape) is None
    lost = data.draw(st.integers(0, len(boxes) - 1))
    assert "are missing" in str(coverage_problem(boxes[:lost] + boxes[lost + 1 :], shape))
    assert "overlap" in str(coverage_problem([*boxes, boxes[lost]], shape))


def write_shards(
    folder: Path,
    whole: torch.Tensor,
    boxes: list[Slices],
    owners: list[int],
    ranks: int,
) -> None:
    """Each rank's file holds its boxes flattened end to end along dimension 0."""
    place = folder / "model" / "model" / "x"
    place.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        mine = [box for box, owner in zip(boxes, owners, strict=True) if owner == rank]
        if not mine:
            continue
        height = sum(box[0][1] - box[0][0] for box in mine)
        widths = [tuple(b - a for a, b in box[1:]) for box in mine]
        assert len(set(widths)) == 1
        shard, pairs, top = torch.empty(height, *widths[0], dtype=whole.dtype), [], 0
        for box in mine:
            bottom = top + box[0][1] - box[0][0]
            shard[top:bottom] = whole[tuple(slice(*pair) for pair in box)]
            local = ((top, bottom), *((0, width) for width in widths[0]))
            pairs.append(f"{written(local)}#{written(box)}")
            top = bottom
        metadata = {
            "version": "1.5",
            "unsharded_shape": str(tuple(whole.shape)),
            "local_global_slices_pairs": ";".join(pairs),
        }
        name = f"model_weight_pp-rank-0-of-1_tp-rank-{rank}-of-{ranks}.safetensors"
        save_file({"data": shard}, place / name, metadata)


@settings(max_examples=60)
@given(data=st.data())
def test_random_shards_merge_to_the_whole(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Rows cut anywhere, dealt to any rank in any order, into split and permuted targets."""
    head, heads = 4, data.draw(st.integers(2, 4))
    rows, columns = head * heads, data.draw(st.integers(1, 5))
    cuts = sorted(data.draw(st.sets(st.integers(1, rows - 1), max_size=5)))
    edges = [0, *cuts, rows]
    boxes: list[Slices] = [((a, b), (0, columns)) for a, b in itertools.pairwise(edges)]
    boxes = data.draw(st.permutations(boxes))
    ranks = data.draw(st.integers(1, 3))
    owners = [data.draw(st.integers(0, ranks - 1)) for _ in boxes]
    folder = tmp_path_factory.mktemp("merge")
    whole = torch.arange(rows * columns, dtype=torch.float32).view(rows, columns)
    write_shards(folder, whole, boxes, owners, ranks)
    parameter = read_parameters(folder)["model.x.weight"]

    targets = (Target("q", 0, rows - head, head, 2.0), Target("v", rows - head, rows))
    results = {
        "q": torch.nn.Parameter(torch.full((rows - head, columns), torch.nan), False),
        "v": torch.nn.Parameter(torch.full((head, columns), torch.nan), False),
    }
    load_weights(
        [(shard, TensorSource((rows, columns), targets)) for shard in parameter.shards], results
    )
    expected = whole[:-head].view(-1, head // 2, 2, columns).transpose(1, 2)
    assert torch.equal(results["q"], expected.reshape(-1, columns) / 2)
    assert torch.equal(results["v"], whole[-head:])


def test_expert_parallel_shards_without_a_place_are_refused_by_name(tmp_path: Path) -> None:
    place = tmp_path / "model/model/x"
    place.mkdir(parents=True)
    label = "pp-rank-0-of-1_tp-rank-0-of-1_exp-rank-0-of-2"
    save_file({"data": torch.zeros(2, 6)}, place / f"model_weight_{label}.safetensors")
    with pytest.raises(UnsupportedCheckpoint, match="exp-rank-0-of-2"):
        read_parameters(tmp_path)
