"""The next checkpoint is read in advance, and one that cannot be read disturbs nobody."""

from pathlib import Path
from typing import Any

import pytest
import torch

from evaluation.checkpoints import load
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.headers import weight_files
from evaluation.checkpoints.prefetch import Prefetch
from tests.checkpoints.nanotron import llama, make_checkpoint


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Prefetch:
    """Of a process of its own."""
    own = Prefetch()
    monkeypatch.setattr(load, "PREFETCH", own)
    caplog.set_level("INFO")
    return own


@pytest.fixture
def steps(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / "1", tmp_path / "2"]
    for seed, folder in enumerate(folders):
        make_checkpoint(folder, llama(), tp=2, seed=seed)
    return folders


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load.load_model(open_checkpoint(folder)).named_parameters())


def test_the_next_checkpoint_is_read_once(
    fetched: Prefetch, steps: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    size = sum(path.stat().st_size for path in weight_files(steps[1]))
    fetched.plan(steps[1])
    for step in steps:
        weights(step)
        fetched.wait()
    assert caplog.messages.count(f"{steps[1]}: {size} bytes prefetched") == 1
    assert len([line for line in caplog.messages if "prefetched" in line]) == 1


BROKEN: dict[str, tuple[Any, str]] = {
    "no weights": (
        lambda folder: [path.unlink() for path in weight_files(folder)],
        "not prefetched: ",
    ),
    "unfinished": (
        lambda folder: (folder / "model" / "x.safetensors.tmp").touch(),
        "not prefetched: ",
    ),
    "a folder for a file": (
        lambda folder: (folder / "model" / "x.safetensors").mkdir(),
        " bytes prefetched",
    ),
    "deleted": (lambda folder: folder.rename(folder.with_name("elsewhere")), "not prefetched: "),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_next_checkpoint_disturbs_nobody(
    fetched: Prefetch, steps: list[Path], broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    expected, (damage, said) = weights(steps[0]), BROKEN[broken]
    damage(steps[1])
    fetched.plan(steps[1])
    found = weights(steps[0])
    fetched.wait()
    (line,) = [line for line in caplog.messages if "prefetched" in line]
    assert line.startswith(f"{steps[1]}: ")
    assert said in line
    assert all(torch.equal(found[name], expected[name]) for name in expected)
