"""What a model takes of a GPU, and a checkpoint that fits no GPU."""

from pathlib import Path

import pytest
import torch

from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import ScoringError
from evaluation.scoring.engine import compile_cache
from evaluation.scoring.engine.footprint import CONTEXT, check_fits, footprint
from tests.doctor.conftest import Nvml, card, look, only
from tests.workflow.world import World

GPU = [torch.device("cuda")]


@pytest.fixture
def step(world: World) -> Path:
    return world.folder / "ckpts/stage1/10"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_are_counted_exactly(step: Path, dtype: torch.dtype, tmp_path: Path) -> None:
    checkpoint = open_checkpoint(step)
    model = load_model(checkpoint, dtype=dtype)
    taken = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    assert footprint(checkpoint, dtype).weights == taken
    model.save_pretrained(tmp_path / "hf")
    assert footprint(open_checkpoint(tmp_path / "hf"), dtype).weights == taken


def test_more_tokens_take_more(step: Path) -> None:
    needs = footprint(open_checkpoint(step), torch.bfloat16)
    assert needs.with_pass(2) - needs.with_pass(1) == needs.step + needs.logits > 0
    far = needs.with_pass(1 << 24) - needs.with_pass(1 << 23)  # the head goes by chunks
    assert far == needs.step << 23
    assert needs.with_pass(1) > needs.weights + CONTEXT


def test_a_checkpoint_that_fits_no_gpu(step: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint, size = open_checkpoint(step), CONTEXT + 1000
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (size, size))
    with pytest.raises(ScoringError) as caught:
        check_fits(checkpoint, torch.float32, GPU)
    for word in (str(step), "needs 0.6 GB of GPU memory in float32", "has 0.6 GB", "bfloat16"):
        assert word in str(caught.value)
    with pytest.raises(ScoringError, match=r"has 0.6 GB; give the job a GPU with more memory"):
        check_fits(checkpoint, torch.bfloat16, GPU)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (0, 2 * size))
    check_fits(checkpoint, torch.float32, GPU)  # whose memory others hold is another sentence


@pytest.mark.parametrize(
    ("used", "total", "state", "word"),
    [
        (4, 81920, "ok", None),
        (81300, 81920, "warning", "so a job would halve them until they fit"),
        (4, 640, "warning", "lower scoring.row_tokens"),
        (4, 500, "fault", "needs 0.6 GB of GPU memory in float32, and the GPU has 0.5 GB"),
    ],
)
def test_doctor_compares_with_the_gpu(
    world: World, nvml: Nvml, used: int, total: int, state: str, word: str | None
) -> None:
    nvml([card(used, total)])
    check = look(world, "stage1")["GPU memory"]
    assert check.state == state
    assert "stage1 needs" in check.summary
    if word is not None:
        assert word in only(check, state)
    gate = look(world, "stage1", gate=True)["GPU memory"]
    assert gate.state == ("warning" if word else "ok")


def test_without_a_gpu_the_need_is_told(world: World) -> None:
    check = look(world)["GPU memory"]
    assert (check.state, check.summary.endswith("no GPU here")) == ("ok", True)
    assert "stage2 needs" in check.summary


def test_nothing_of_it_where_the_cpu_scores(world: World) -> None:
    world.change(scoring={"device": "cpu"})
    assert not {"GPU memory", "compile cache"} & look(world).keys()


def test_the_folder_of_compiled_kernels(
    world: World, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert look(world)["compile cache"].state == "ok"
    assert not (world.folder / "cache/compiled").exists()
    monkeypatch.setattr(compile_cache, "LEAST_FREE", 1 << 60)
    assert "MB left), so every job" in only(look(world)["compile cache"], "warning")
    nvml([card(4)])
    check = look(world)["compile cache"]
    assert [finding.state for finding in check.findings] == ["warning", "fault"]
    assert "set TMPDIR" in check.findings[1].sentence


def test_a_file_in_the_way_of_compiled_kernels(world: World) -> None:
    (world.folder / "cache/compiled").write_text("")
    assert "is a file where a folder" in only(look(world)["compile cache"], "warning")
