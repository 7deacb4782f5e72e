"""What the doctor says of stages whose answers are generated."""

import pytest
import yaml

from evaluation.dependencies.estimates import estimate_answers
from evaluation.errors import SandboxError
from evaluation.files import write_json
from evaluation.prefill.entries import read_meta
from evaluation.settings.config import load_config
from evaluation.settings.plan import plan_stages
from tests.doctor.conftest import look, only
from tests.workflow.world import World

TASK = {
    "dataset": "made/quiz",
    "split": "test",
    "prompt": "Q: {{ question }} A:",
    "chat": False,
    "max_new_tokens": 8,
    "sampling": {"temperature": 1.0, "n": 4},
    "document": {"gold": "'a'"},
    "verifiers": {"first": {"kind": "pattern", "pattern": "(.)", "form": "{gold}"}},
    "limit": 10,
}
PROGRAM = {
    **TASK,
    "document": {"tests": "['assert f() == 1']"},
    "verifiers": {"runs": {"kind": "program"}},
}


def ask(world: World, **tasks: object) -> None:
    path = world.folder / "suites" / "sft.yaml"
    content = {**yaml.safe_load(path.read_text()), "generation_tasks": tasks}
    path.write_text(yaml.safe_dump(content))
    for name in tasks:
        done = world.evaluation("prefill", "--stage", "stage2", "--generation", name)
        assert done.returncode == 0, done.stderr


def test_what_it_will_take_is_told_before_anything_runs(world: World) -> None:
    assert "answers" not in look(world)
    ask(world, sums=TASK)
    said = "3 checkpoints × 40 completions, 320 tokens at most in all of one"
    assert look(world)["answers"].summary == f"stage2: {said}"
    folder = world.results("stage2", "by_checkpoint", "step_5")
    write_json(folder / "tier5_verified.json", {"tokens_per_second": 0.1})
    known = f"stage2: at most 2.7 h at the last 0 tokens/s, {said}"
    assert look(world)["answers"].summary == known
    dry = world.snakemake("-n", "stage2")
    assert f"answers: {known}" in (dry.stdout + dry.stderr).splitlines()


def test_what_is_scored_takes_nothing(world: World) -> None:
    ask(world, sums=TASK)
    plan = plan_stages(load_config(world.config))["stage2"]
    folder = plan.generation_folder("sums")
    told = estimate_answers(plan, [], lambda path: read_meta(path) if path == folder else None)
    assert told == "stage2: nothing is to be generated"


def refuse() -> str:
    raise SandboxError("no sandbox here; ask your administrator")


def test_programs_need_a_sandbox(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(world, sums=PROGRAM)
    assert look(world)["sandbox"].state == "ok"
    monkeypatch.setattr("evaluation.verification.sandbox.run.describe_sandbox", refuse)
    assert "no sandbox here" in only(look(world)["sandbox"], "warning")


def test_probes_that_run_code_need_a_sandbox(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.verification.sandbox.run.describe_sandbox", refuse)
    assert "sandbox" not in look(world)
    path = world.folder / "suites" / "sft.yaml"
    content = yaml.safe_load(path.read_text())
    next(iter(content["probes"].values()))["checks"].append(
        {"check": "passes_tests", "tests": "assert f() == 1"}
    )
    path.write_text(yaml.safe_dump(content))
    assert "no sandbox here" in only(look(world)["sandbox"], "warning")


def test_a_provider_that_is_not_installed_is_named_once(world: World) -> None:
    path = world.folder / "suites" / "sft.yaml"
    task = {"provider": "lighteval", "task": "gsm8k"}
    content = {**yaml.safe_load(path.read_text()), "generation_tasks": {"one": task, "two": task}}
    path.write_text(yaml.safe_dump(content))
    world.change(providers={"lighteval": str(world.folder / "nowhere" / "python")})
    check = look(world)["answers"]
    assert check.summary == "stage2: not prefilled"
    assert "lighteval is not installed" in only(check, "fault")


def test_an_engine_that_is_not_installed_is_a_fault(world: World) -> None:
    ask(world, sums=TASK)
    world.change(generation={"engine": "vllm", "python": "nowhere/python"})
    assert "nowhere/python; install vLLM" in only(look(world)["answers"], "fault")
