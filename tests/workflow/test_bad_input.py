"""Bad input, as a user meets it: one sentence, exit code 1, nothing half-written, nothing lost."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from evaluation.records import RECORDED
from tests.workflow.world import World, stored_scores, write_rows

SCORE = ("score", "--stage", "stage1", "--step", "10")


def weight(world: World, part: str) -> Path:
    return next((world.folder / "ckpts/stage1/10/model").rglob(f"*{part}*/model_weight*"))


def rewrite(path: Path, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    save_file({"data": change(load_file(path)["data"])}, path, metadata)


def missing_weight(world: World) -> list[str]:
    path = weight(world, "o_proj")
    path.unlink()
    return ["o_proj", "ckpts/stage1/10"]


def half_written_weight(world: World) -> list[str]:
    path = weight(world, "down_proj")
    path.write_bytes(path.read_bytes()[:-100])
    return [path.name, "down_proj"]


def nan_weights(world: World) -> list[str]:
    rewrite(weight(world, "token_embedding"), lambda data: data * float("nan"))
    return ["ckpts/stage1/10", "text", "NaN"]


def corrupt_cache(world: World) -> list[str]:
    path = next((world.folder / "cache").rglob("packed_tokens.pt"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return ["packed_tokens.pt is damaged", "prefill"]


def other_tokenizer(world: World) -> list[str]:
    path = world.folder / "ckpts/stage1/10/config.yaml"
    content = yaml.safe_load(path.read_text())
    content["tokenizer"]["tokenizer_name_or_path"] = "org/other"
    path.write_text(yaml.safe_dump(content))
    return ["'org/other'", "also_known_as"]


def other_length(world: World) -> list[str]:
    path = world.folder / "ckpts/stage1/10/config.yaml"
    content = yaml.safe_load(path.read_text())
    content["tokens"]["sequence_length"] = 32
    path.write_text(yaml.safe_dump(content))
    return ["sequences of 32 tokens", "sequence_length: 32"]


def no_checkpoint(world: World) -> list[str]:
    shutil.rmtree(world.folder / "ckpts/stage1/10")
    return ["no checkpoint of step 10", "10, 20"]


def results_is_a_file(world: World) -> list[str]:
    shutil.rmtree(world.folder / "results", ignore_errors=True)  # prefill's checksums of data
    (world.folder / "results").write_text("in the way")
    return ["results/scores", "Not a directory"]


@pytest.mark.parametrize(
    "breakage",
    [
        missing_weight,
        half_written_weight,
        nan_weights,
        corrupt_cache,
        other_tokenizer,
        other_length,
        no_checkpoint,
        results_is_a_file,
    ],
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


def quiz(world: World, **row: object) -> None:
    rows = [{"question": "the cat sat", "answers": ["on", "far"], "label": 0, **row}] * 2
    write_rows(world.folder / "data/quiz/test.jsonl", rows)
    shutil.rmtree(world.folder / "cache")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"answers": ["on", ""]}, ["quiz", "empty"]),
        ({"answers": ["on", "far " * 200]}, ["quiz", "64"]),
        ({"label": -1}, ["quiz", "test"]),
        ({"question": None}, ["tasks.quiz.context", "null"]),
    ],
)
def test_questions_that_cannot_be_asked(
    world: World, row: dict[str, object], words: list[str]
) -> None:
    quiz(world, **row)
    check_one_sentence(world.evaluation("prefill", "--stage", "stage1", "--task", "quiz"), words)


def test_text_that_is_not_utf8(world: World) -> None:
    path = world.folder / "data/text/train.jsonl"
    path.write_bytes(path.read_bytes()[:50] + b"\xff\xfe" + path.read_bytes()[50:])
    shutil.rmtree(world.folder / "cache")
    done = world.evaluation("prefill", "--stage", "stage1", "--slice", "text")
    check_one_sentence(done, ["train.jsonl", "UTF-8"])
