"""Each fault is made for real and found with its remedy."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.doctor.findings import Check
from tests.doctor.conftest import doctor, look, only
from tests.workflow.world import World, build_tokenizer, flip

MACHINE = ("GPU", "versions", "Slurm")


def healthy(checks: dict[str, Check], *but: str) -> None:
    """Every check of the project is ok but for the named ones."""
    for name, check in checks.items():
        assert name in (*but, *MACHINE) or check.state == "ok", check


def entry(world: World, name: str) -> Path:
    return next((world.folder / "cache").rglob(name))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def test_a_healthy_world(world: World) -> None:
    checks = look(world)
    healthy(checks)
    assert checks["checkpoints"].summary == "4 to score"
    assert checks["bridges"].summary == "1 to score"
    assert "1 slices, 1 tasks, 1 probes" in checks["suites"].summary
    done, found = doctor(world)
    assert done.returncode == 0, done.stderr
    assert found["state"] != "fault"


def test_a_truncated_shard(world: World) -> None:
    """A fault; to the workflow's gate, which lets the other checkpoints be scored, a warning."""
    truncate(world.weight("stage1/20", "down_proj"))
    checks = look(world)
    healthy(checks, "checkpoints", "bridges")
    for name, stage, label in (
        ("checkpoints", "stage1", "stage1/20"),
        ("bridges", "stage2", "stage2 bridge"),
    ):
        sentence = only(checks[name])
        assert checks[name].findings[0].subject == label
        assert re.search("down_proj.* ends early", sentence)
        assert only(look(world, stage, gate=True)[name], "warning") == sentence
    assert doctor(world)[0].returncode == 1
    assert doctor(world, "--gate", "--stage", "stage1")[0].returncode == 0
    truncate(world.weight("stage1/10", "down_proj"))  # now all
    assert look(world, "stage1", gate=True)["checkpoints"].state == "warning"


@pytest.mark.parametrize("file", ["packed_tokens.pt", "examples.jsonl", "prompts.jsonl"])
@pytest.mark.parametrize("breakage", [Path.unlink, flip])
def test_a_broken_cache(world: World, file: str, breakage: Callable[[Path], None]) -> None:
    breakage(entry(world, file))
    checks = look(world)
    healthy(checks, "caches", "offline")
    sentence = only(checks["caches"])
    assert f"{file} is damaged" in sentence
    assert "snakemake prefill" in sentence
    assert "stage2" in only(checks["offline"])


def rewrite(path: Path, *keys: Any, value: object) -> None:
    """Sets a value deep in a YAML file."""
    content = yaml.safe_load(path.read_text())
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(yaml.safe_dump(content))


def halfway(world: World) -> None:
    path = world.weight("stage2/5", "o_proj")
    path.rename(path.with_name(path.name + ".part"))


TRAINED = "ckpts/stage1/10/config.yaml"
FAULTS: dict[str, tuple[Callable[[World], object], str, str]] = {
    "a checkpoint that is deleted": (lambda w: shutil.rmtree(w.folder / "ckpts/stage1/10"), "checkpoints",
        "stage1/10: no such folder"),
    "a checkpoint that is being copied": (halfway, "checkpoints", "an unfinished file; wait"),
    "no steps": (lambda w: shutil.rmtree(w.folder / "ckpts/stage2"), "checkpoints",
        "no such folder to find steps in"),
    "a cache of other settings": (
        lambda w: rewrite(w.folder / "suites/base.yaml", "tasks", "quiz", "context",
            value="Q: {{ question }}"),
        "caches", "cf_tasks/quiz was made under other settings",
    ),
    "a tokenizer that does not load": (lambda w: entry(w, "tokenizer.json").unlink(), "tokenizer",
        "tokenizer.json is damaged: the file is missing"),
    "another tokenizer in training": (
        lambda w: rewrite(w.folder / TRAINED, "tokenizer", "tokenizer_name_or_path", value="org/other"),
        "agreement", "'org/other'",
    ),
    "another length in training": (
        lambda w: rewrite(w.folder / TRAINED, "tokens", "sequence_length", value=32),
        "agreement", "set sequence_length: 32",
    ),
    "a suite that is not there": (lambda w: (w.folder / "suites/sft.yaml").unlink(), "configuration",
        "stages.stage2.suites"),
    "results where nobody may write": (lambda w: w.change(results="/proc/results"), "folders",
        "/proc cannot be written to"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_its_check(world: World, name: str) -> None:
    breakage, check, words = FAULTS[name]
    breakage(world)
    assert words in only(look(world)[check])


def test_what_was_edited_after_prefill_stops_a_job(world: World) -> None:
    path = world.folder / "data/quiz/test.jsonl"
    path.write_text(path.read_text().replace('"label": 0', '"label": 1', 1))
    sentence = only(look(world)["caches"])
    assert "cf_tasks/quiz was made from other data than there is now; run" in sentence
    job = world.evaluation("score", "--stage", "stage1", "--step", "10")
    assert job.stderr.startswith(f"error: {sentence}")


def test_nothing_is_prefilled(world: World) -> None:
    shutil.rmtree(world.folder / "cache")
    checks = look(world)
    assert "is not prefilled" in only(checks["tokenizer"])
    assert len(checks["caches"].findings) == 3
    healthy(checks, "tokenizer", "caches", "offline")


def test_a_tokenizer_with_more_ids_than_the_embedding_has_rows(world: World) -> None:
    """A larger tokenizer under the same name, prefilled anew."""
    folder = world.folder / "larger"
    tokenizer = build_tokenizer(["some other words"], folder)
    tokenizer.add_tokens([f"<extra {number}>" for number in range(100)])
    tokenizer.save_pretrained(folder)
    name = yaml.safe_load(world.config.read_text())["tokenizer"]["name"]
    world.change(tokenizer={"name": str(folder), "also_known_as": [name]})
    assert world.evaluation("prefill").returncode == 0
    checks = look(world)
    assert checks["agreement"].state == "fault"
    assert len(checks["agreement"].findings) == 5
    assert "its embedding has 320 rows" in checks["agreement"].findings[0].sentence


def test_a_mistake_in_the_configuration(world: World) -> None:
    world.change(colour="red")
    checks = look(world)
    assert "colour: " in only(checks["configuration"])
    assert set(checks) == {"configuration", *MACHINE}
    assert doctor(world)[0].returncode == 1


def test_what_is_scored_is_not_read_again(world: World) -> None:
    """Nor missed, if its checkpoint is deleted; one that is another by now is looked at."""
    assert world.evaluation("score", "--stage", "stage1", "--step", "10").returncode == 0
    checkpoint = world.folder / "ckpts/stage1/10"
    shutil.move(checkpoint, world.folder / "aside")
    checks = look(world)
    healthy(checks)
    assert checks["checkpoints"].summary == "3 to score; 1 already scored"
    shutil.copytree(world.folder / "aside", checkpoint)
    shutil.rmtree(checkpoint / "model")
    os.utime(checkpoint / "config.yaml", (0, 0))
    assert "no such folder" in only(look(world)["checkpoints"])
