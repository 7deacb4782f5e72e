"""What doctor says of generated answers: how many there will be, and what their programs need."""

import pytest

from evaluation.checkpoints import contents
from evaluation.dependencies.estimates import estimate_answers
from evaluation.errors import SandboxError
from evaluation.files import write_json
from evaluation.grading.imports import import_file, imported_tasks
from evaluation.prefill.caches import read_prompts
from evaluation.prefill.entries import read_meta
from tests.doctor.conftest import look, only
from tests.workflow.world import World, write_rows

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


def test_what_it_will_take_is_shown_before_anything_runs(world: World) -> None:
    assert "answers" not in look(world)
    ask(world, sums=TASK)
    count = "3 checkpoints × 40 completions (960 tokens at most in total)"
    assert look(world)["answers"].summary == f"stage2: {count}"
    folder = world.results("stage2", "by_checkpoint", "step_5")
    times = {10.0: "at most 1.6 min", 758.0: "under a minute", 0.1: "at most 2.7 h"}
    for speed, time in times.items():
        write_json(folder / "tier5_verified.json", {"tokens_per_second": speed})
        known = f"stage2: {time} at the last {speed:.0f} tokens/s, {count}"
        assert look(world)["answers"].summary == known
    dry = world.snakemake("-n", "stage2")
    assert f"answers: {known}" in (dry.stdout + dry.stderr).splitlines()
    plan = world.plans["stage2"]
    metas = {path: read_meta(path) for path in [plan.cache_folder("tier5", "sums")]}
    assert (
        estimate_answers(plan, [], metas.get, imported_tasks)
        == "stage2: nothing is to be generated"
    )


def test_imported_completions_are_not_to_be_generated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints lack different tasks; those of whose weights a file changed count as before."""
    ask(world, sums=TASK, more={**TASK, "limit": 1, "sampling": {"temperature": 1.0, "n": 1}})
    assert look(world)["answers"].summary.startswith(
        "stage2: 3 checkpoints × 41 completions (984 t"
    )
    monkeypatch.setattr(contents, "_SETTLED_SECONDS", -60.0)  # the files were copied just now
    plan, plans = world.plans["stage2"], world.plans

    def bring(task: str, count: int, *checkpoints: str) -> None:
        ids = [prompt.id for prompt in read_prompts(plan.cache_folder("tier5", task)).prompts]
        write_rows(
            world.folder / "given.jsonl",
            [{"id": id, "completion": "a", "sample": n} for id in ids for n in range(count)],
        )
        for name in checkpoints:
            import_file(plans, plan, name, task, world.folder / "given.jsonl", ("x", None))

    bring("sums", 4, "5")
    one = "stage2: 1 checkpoint × 1 completion and 2 checkpoints × 41 completions (664 tokens"
    assert look(world)["answers"].summary.startswith(one)
    bring("sums", 4, "15", "bridge")
    bring("more", 1, "5", "15")
    left = "stage2: 1 checkpoint × 1 completion (8 tokens at most in total)"
    assert look(world)["answers"].summary == left
    dry = world.snakemake("-n", "stage2")
    assert f"answers: {left}" in (dry.stdout + dry.stderr).splitlines()
    bring("more", 1, "bridge")
    assert look(world)["answers"].summary == "stage2: nothing is to be generated"
    world.weight("stage2/15", "down_proj").touch()
    assert "1 checkpoint × 41 completions" in look(world)["answers"].summary


def test_programs_of_tasks_and_probes_need_a_sandbox(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "sandbox" not in look(world)
    ask(world, sums=PROGRAM)
    assert look(world)["sandbox"].state == "ok"

    def refuse() -> str:
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
    assert check.summary == "stage2: not prefilled"
    assert "lighteval is not installed" in only(check, "fault")
