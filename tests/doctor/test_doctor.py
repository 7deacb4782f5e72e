"""`doctor`: each fault is made for real and found with its remedy."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from evaluation.commands.doctor import SHOWN, Problem, _lines, check_all
from evaluation.errors import SandboxError
from tests.workflow.world import ANSWERED, FIRST_LETTER, World, flip

TASK = {
    **ANSWERED,
    "max_new_tokens": 8,
    "sampling": {"temperature": 1.0, "n": 4},
    "verifiers": {"first": FIRST_LETTER},
    "limit": 10,
}
PROGRAM = {
    **TASK,
    "document": {"tests": "['assert f() == 1']"},
    "verifiers": {"runs": {"kind": "program"}},
}


def problems(world: World) -> dict[str, list[Problem]]:
    """What is wrong, by check."""
    return {name: own for name, own in check_all(world.plans, world.plans).items() if own}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def entry(world: World, name: str) -> Path:
    return next((world.folder / "cache").rglob(name))


def retrain(world: World, section: str, key: str, value: object) -> None:
    path = world.folder / "ckpts/stage1/10/config.yaml"
    content = yaml.safe_load(path.read_text())
    content[section][key] = value
    path.write_text(yaml.safe_dump(content))


def reword(world: World) -> None:
    tasks = yaml.safe_load((world.folder / "suites/base.yaml").read_text())["tasks"]
    tasks["quiz"]["context"] = "Q: {{ question }}"
    world.change_suite("base", tasks=tasks)


FAULTS: dict[str, tuple[Callable[[World], object], str, str]] = {
    "a cut shard": (lambda w: cut(w.weight("stage1/10", "down_proj")), "checkpoints", "ends early"),
    "a deleted checkpoint": (lambda w: shutil.rmtree(w.folder / "ckpts/stage1/10"), "checkpoints",
        "stage1/10: no such folder"),
    "no steps": (lambda w: shutil.rmtree(w.folder / "ckpts/stage2"), "checkpoints", "no such folder"),
    "another tokenizer": (lambda w: retrain(w, "tokenizer", "tokenizer_name_or_path", "org/other"),
        "checkpoints", "'org/other'"),
    "another length": (lambda w: retrain(w, "tokens", "sequence_length", 32), "checkpoints",
        "set sequence_length: 32"),
    "a damaged cache": (lambda w: flip(entry(w, "examples.jsonl")), "caches", "snakemake prefill"),
    "a missing cache": (lambda w: entry(w, "prompts.jsonl").unlink(), "caches", "snakemake prefill"),
    "other settings": (reword, "caches", "cf_tasks/quiz was made under other settings"),
    "results in a file": (lambda w: w.change(results=f"{w.config}/results"), "disk", "cannot be written to"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_its_check(world: World, name: str) -> None:
    breakage, check, words = FAULTS[name]
    breakage(world)
    (found,) = problems(world)[check]
    assert words in found.sentence
    assert not found.is_warning


def test_a_healthy_world(world: World) -> None:
    assert problems(world) == {}
    done = world.evaluation("doctor", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["faults"] == []


def test_a_fault_is_exit_code_1_but_a_broken_checkpoint_stops_no_other(world: World) -> None:
    cut(world.weight("stage1/10", "down_proj"))
    assert world.evaluation("doctor").returncode == 1
    assert world.evaluation("doctor", "--gate").returncode == 0
    world.change(colour="red")
    done = world.evaluation("doctor", "--gate")
    assert done.returncode == 1
    assert "colour" in done.stdout


def test_what_is_scored_and_then_deleted_is_no_fault(world: World) -> None:
    assert world.evaluation("score", "--stage", "stage1", "--step", "10").returncode == 0
    shutil.rmtree(world.folder / "ckpts/stage1/10")
    assert problems(world) == {}


def test_what_answers_need(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.change_suite("sft", generation_tasks={"sums": PROGRAM})
    done = world.evaluation("prefill", "--stage", "stage2", "--generation", "sums")
    assert done.returncode == 0, done.stderr

    def refuse(kind: str) -> str:
        raise SandboxError("no sandbox here; ask your administrator")

    monkeypatch.setattr("evaluation.verification.sandbox.run.describe_sandbox", refuse)
    (found,) = problems(world)["sandbox"]
    assert (found.is_warning, "no sandbox here" in found.sentence) == (True, True)
    world.change_suite("sft", generation_tasks={"one": {"provider": "lighteval", "task": "gsm8k"}})
    world.change(providers={"lighteval": str(world.folder / "nowhere" / "python")})
    assert any("not installed" in each.sentence for each in problems(world)["answers"])


def test_a_table_shows_the_first_of_many() -> None:
    many = [Problem(f"/ckpts/{number}: ends early; copy it again") for number in range(300)]
    lines = list(_lines({"checkpoints": many, "GPU": []}))
    assert len(lines) == SHOWN + 2
    assert f"{300 - SHOWN} more problems" in lines[-2]
