"""Bad input, as a user meets it: one sentence, exit code 1, nothing half-written, nothing lost."""

import shutil
import subprocess
from collections.abc import Callable

import pytest
from safetensors.torch import load_file

from evaluation.records import RECORDED
from tests.checkpoints.nanotron import rewrite
from tests.workflow.world import World, flip, stored_scores

SCORE = ("score", "--stage", "stage1", "--step", "10")


def half_written_weight(world: World) -> list[str]:
    path = world.weight("stage1/10", "down_proj")
    path.write_bytes(path.read_bytes()[:-100])
    return [path.name, "down_proj"]


def nan_weights(world: World) -> list[str]:
    path = world.weight("stage1/10", "token_embedding")
    rewrite(path, load_file(path)["data"] * float("nan"))
    return ["ckpts/stage1/10", "text", "NaN"]


def corrupt_cache(world: World) -> list[str]:
    flip(next((world.folder / "cache").rglob("packed_tokens.pt")))
    return ["packed_tokens.pt is damaged", "prefill"]


def results_is_a_file(world: World) -> list[str]:
    shutil.rmtree(world.folder / "results", ignore_errors=True)  # prefill's checksums of data
    (world.folder / "results").write_text("in the way")
    return ["results/scores", "Not a directory"]


@pytest.mark.parametrize(
    "breakage", [half_written_weight, nan_weights, corrupt_cache, results_is_a_file]
)
def test_scoring_what_is_broken(world: World, breakage: Callable[[World], list[str]]) -> None:
    words = breakage(world)
    check_one_sentence(world.evaluation(*SCORE), words)
    folder = world.results("stage1", "by_checkpoint", "step_10")
    assert not list(folder.glob("tier*"))


def check_one_sentence(done: subprocess.CompletedProcess[str], words: list[str]) -> None:
    assert done.returncode in (1, RECORDED), done.stderr
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    for word in words:
        assert word in errors[0]


def test_what_was_scored_before_a_failure_is_kept(world: World) -> None:
    """The task's examples are damaged after prefill, so the job stops after reading the caches."""
    assert world.evaluation(*SCORE).returncode == 0
    stored = stored_scores(world.results())
    assert len(stored) == 2
    shutil.rmtree(world.results("stage1"))
    corrupt_cache(world)
    assert world.evaluation(*SCORE).returncode == 1
    assert stored_scores(world.results()) == stored
