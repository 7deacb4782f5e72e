"""`inspect`, `verify` and `merge`: what they say, and of what does not fit."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.tools.conftest import Command, made
from tests.workflow.world import World

IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])
LOGITS = torch.ones(2, 3, 320)

PLACES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "nothing": (lambda f: f / "absent", "absent: "),
    "a file": (lambda f: made(f / "file", Path.touch), "file: "),
    "an empty folder": (lambda f: made(f / "empty", Path.mkdir), "empty: "),
}  # fmt: skip
"""What is there, and what is said of it as a checkpoint."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["inspect", "verify", "merge", "loglikelihood"])
def test_places_that_hold_no_checkpoint(
    command: Command, tmp_path: Path, name: str, place: str
) -> None:
    make, words = PLACES[place]
    requests = tmp_path / "in.jsonl"
    requests.write_text('{"context_tokens": [1], "continuation_tokens": [2]}\n')
    more = {
        "inspect": [],
        "verify": ["--reference", tmp_path / "r.safetensors"],
        "merge": [tmp_path, "--output", tmp_path / "target"],
        "loglikelihood": ["--requests", requests, "--output", tmp_path / "out.jsonl"],
    }
    command(name, make(tmp_path), *more[name]).check(1, words)
    assert not (tmp_path / "out.jsonl").exists()
    assert not (tmp_path / "target").exists()


REFERENCES: dict[str, dict[str, torch.Tensor | None]] = {
    "ids beyond the vocabulary": {"input_ids": IDS + 320},
    "no logits": {"logits": None},
    "logits of more ids": {"logits": torch.ones(2, 3, 321)},
    "logits that are NaN": {"logits": LOGITS * torch.nan},
}


@pytest.mark.parametrize("changes", REFERENCES.values(), ids=REFERENCES)
def test_references_that_do_not_fit(
    command: Command, checkpoint: Path, tmp_path: Path, changes: dict[str, torch.Tensor | None]
) -> None:
    content = {"input_ids": IDS, "logits": LOGITS, **changes}
    path = tmp_path / "reference.safetensors"
    save_file({key: value for key, value in content.items() if value is not None}, path)
    command("verify", checkpoint, "--reference", path).check(1, str(path))


def test_what_verify_says(command: Command, checkpoint: Path, tmp_path: Path) -> None:
    path = tmp_path / "reference.safetensors"
    save_file({"input_ids": IDS, "logits": LOGITS}, path)
    ended = command("verify", checkpoint, "--reference", path)
    ended.check(1)
    assert "more than the tolerance of 0.0001" in ended.out
    ended = command("verify", checkpoint, "--reference", path, "--tolerance", 100)
    ended.check(0)
    assert "within the tolerance of 100" in ended.out


@pytest.mark.parametrize(
    ("chosen", "weights"),
    [(["--last", 2], (1, 1)), (["--steps", 20, 10, "--weights", 3, 1], (1, 3))],
)
def test_merge_averages_the_chosen_steps(
    command: Command, world: World, tmp_path: Path, chosen: list[object], weights: tuple[int, int]
) -> None:
    ended = command("merge", world.folder / "ckpts/stage1", *chosen, "--output", tmp_path / "30")
    ended.check(0)
    assert ended.out.split() == [str(tmp_path / "30")]
    one, other = (load_file(world.folder / f"hf/{n}/model.safetensors") for n in (0, 1))
    for name, value in load_file(tmp_path / "30/model.safetensors").items():
        exact = (weights[0] * one[name] + weights[1] * other[name]) / sum(weights)
        torch.testing.assert_close(value, exact, rtol=1e-6, atol=1e-7)
