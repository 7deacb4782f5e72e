"""What doctor says of generated answers: what their programs and data need."""

import pytest
import yaml

from evaluation.errors import SandboxError
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
    world.change_suite("sft", generation_tasks=tasks)
    for name in tasks:
        done = world.evaluation("prefill", "--stage", "stage2", "--generation", name)
        assert done.returncode == 0, done.stderr


def test_programs_of_tasks_and_probes_need_a_sandbox(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not {"answers", "sandbox"} & look(world).keys()
    ask(world, sums=PROGRAM)
    assert look(world)["sandbox"].state == "ok"

    def refuse(kind: str) -> str:
        raise SandboxError("no sandbox here; ask your administrator")

    monkeypatch.setattr("evaluation.verification.sandbox.run.describe_sandbox", refuse)
    assert "no sandbox here" in only(look(world)["sandbox"], "warning")
    asked = [{"role": "user", "content": "Write f."}]
    tested = [{"check": "passes_tests", "tests": "assert f() == 1"}]
    probe = {"category": "code", "messages": asked, "checks": tested}
    world.change_suite("sft", generation_tasks={}, probes={"f": probe})
    assert "no sandbox here" in only(look(world)["sandbox"], "warning")


def test_a_provider_that_is_not_installed_is_named_once(world: World) -> None:
    task = {"provider": "lighteval", "task": "gsm8k"}
    world.change_suite("sft", generation_tasks={"one": task, "two": task})
    world.change(providers={"lighteval": str(world.folder / "nowhere" / "python")})
    check = look(world)["answers"]
    assert check.summary == "stage2: one, two"
    assert "lighteval is not installed" in only(check, "fault")


def test_warns_of_an_objective_whose_prompts_show_no_form(world: World) -> None:
    shown = {"num_fewshot": 1, "answer": " a", "fewshot_examples": [{"question": "1 + 1?"}]}
    world.change_suite("sft", generation_tasks={"bare": TASK, "shown": {**TASK, **shown}})
    stages = yaml.safe_load(world.config.read_text())["stages"]
    stages["stage2"]["objective"] = [{"tier": "tier5", "want": "improve", "margin": 0.0}]
    world.change(stages=stages)
    sentence = only(look(world)["configuration"], "warning")
    assert "stages.stage2.objective.0: bare: " in sentence
