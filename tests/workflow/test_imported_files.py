"""Completions of other engines, from prefilled prompts to the page, by commands alone."""

import json
from typing import Any

from tests.histories.warm import well
from tests.workflow.world import ANSWERED, FIRST_LETTER, World, want_answers, write_rows

TASK: dict[str, Any] = {
    **ANSWERED,
    "max_new_tokens": 6,
    "verifiers": {"strict": FIRST_LETTER},
    "limit": 8,
    "sampling": {"temperature": 1.0, "n": 2},
}


def batch(prompt: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    choices = [
        {"index": n, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        for n, text in enumerate(texts)
    ]
    response = {"status_code": 200, "request_id": "r", "body": {"choices": choices}}
    return {"id": "vllm-1", "custom_id": prompt["id"], "response": response, "error": None}


def check_results(world: World, said: str) -> None:
    """Rates, deltas and the note on two engines, in files, page and terminal."""
    found = {}
    for name in ("by_checkpoint/step_5", "by_checkpoint/step_15", "bridge"):
        tier = world.read("stage2", *name.split("/"), "tier5_verified.json")
        entry = tier["generation_tasks"]["sums"]
        rates = entry["verifiers"]["strict"]
        at_k = [one["value"] for one in rates["pass_at_k"].values()]
        found[name] = entry["engine"]["name"], rates["pass_rate"], *at_k
    assert found == {
        "by_checkpoint/step_5": ("sglang 0.5", 0.75, 0.75, 1.0),
        "by_checkpoint/step_15": ("vllm 0.9", 1.0, 1.0, 1.0),
        "bridge": ("another engine", 0.0, 0.0, 0.0),
    }
    deltas = world.read("stage2", "by_checkpoint", "step_15", "bridge_deltas.json")
    assert {
        row["delta"]
        for row in deltas["deltas"]
        if (row["item"], row["metric"]) == ("sums", "delta_pass_rate")
    } == {1.0}
    note = "sums are by vllm 0.9, those of the bridge by another engine"
    assert any(note in one for one in deltas["notes"])
    page = world.results("stage2", "report.html").read_text()
    assert note in page
    assert "sglang 0.5, imported from ours.jsonl" in page
    assert note in said + well(world.evaluation("bridge-table")).stdout


def test_from_prompts_to_the_page(world: World) -> None:
    plan = want_answers(world, {"sums": TASK})
    well(world.snakemake("prefill"))
    path = plan.cache_folder("tier5", "sums") / "prompts.jsonl"
    prompts = [json.loads(line) for line in path.read_text().splitlines()]
    right = {prompt["id"]: ["a", "a" if n % 2 else "b"] for n, prompt in enumerate(prompts)}
    ours = [
        {"id": id, "sample": n, "completion": t}
        for id, ts in right.items()
        for n, t in enumerate(ts)
    ]
    write_rows(world.folder / "ours.jsonl", ours)
    write_rows(world.folder / "batch.jsonl", [batch(p, ["a", "a"]) for p in prompts])
    write_rows(world.folder / "wrong.jsonl", [batch(p, ["b", "b"]) for p in prompts])
    for file, *words in (
        ("ours.jsonl", "--step", "5", "--engine", "sglang 0.5"),
        ("batch.jsonl", "--step", "15", "--engine", "vllm 0.9"),
        ("wrong.jsonl", "--bridge"),
    ):
        names = ["--stage", "stage2", "--task", "sums", *words]
        done = well(world.evaluation("import-completions", file, *names))
        assert "the next run verifies them: `snakemake stage2" in done.stdout
    done = well(world.snakemake("stage2"))
    check_results(world, done.stdout + done.stderr)
