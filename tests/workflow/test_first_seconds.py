"""What stops a run: one sentence each, exit code 1, nothing half-written, nothing lost."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file

from evaluation.records import RECORDED
from tests.checkpoints.nanotron import rewrite
from tests.histories.warm import well
from tests.tables import cases
from tests.workflow.paper import ROOT, Paper
from tests.workflow.world import World, flip, stored_scores

STAGES = {"one": {}, "ablation_A": {}}
SLURM = ("--profile", str(ROOT / "slurm_profile"))
NEEDED = ("sh", "bash", "which", "env", "tee", "touch")
"""Programs that Snakemake itself needs."""


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    return Paper(tmp_path / "paper", STAGES)


def programs(paper: Paper, **scripts: str) -> str:
    """A PATH with these shell scripts and no Slurm of the machine's own."""
    folder = paper.folder / "bin"
    folder.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return str(folder)


REFUSES = {"sbatch": "exit 1", "squeue": "exit 1", "scontrol": "exit 1"}
ACCOUNTS = {**REFUSES, "sacctmgr": "echo proj_a; echo proj_b"}


@pytest.mark.parametrize(("target", "words"), cases("workflow/names", "unknown_targets"))
def test_an_unknown_target(paper: Paper, target: str, words: list[str]) -> None:
    done = paper.snakemake(target, "-n")
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    assert "Traceback" not in output
    assert "No rule to produce" not in output
    for word in ["nothing here is called", *words]:
        assert word in output


KNOWN_TARGETS = [
    "ablation_A",
    "results/one/summary.csv",
    "results/one/by_checkpoint/step_10/tier2_ppl.json",
    "score_one_from_10",
]


@pytest.mark.parametrize("target", KNOWN_TARGETS)
def test_a_known_target(paper: Paper, target: str) -> None:
    well(paper.snakemake(target, "-n", "--set-resources", "shared_scoring:checkpoints=2"))


CLUSTERS: list[tuple[str, dict[str, str], list[str]]] = [
    ("no sbatch", {}, ["sbatch: no such command", "login node", "--cores N"]),
    ("the account as shipped", ACCOUNTS, ["YOUR_ACCOUNT", "yours: proj_a, proj_b"]),
    ("the same, accounts unknown", REFUSES, ["YOUR_ACCOUNT, as shipped", "charged to into"]),
]


@pytest.mark.parametrize(
    ("scripts", "words"), [c[1:] for c in CLUSTERS], ids=[c[0] for c in CLUSTERS]
)
def test_a_cluster_that_cannot_be_used(
    paper: Paper, scripts: dict[str, str], words: list[str]
) -> None:
    begin = time.monotonic()
    done = paper.snakemake("one", *SLURM, PATH=programs(paper, **scripts))
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    assert time.monotonic() - begin < 60
    assert "Traceback" not in output
    assert "sbatch call" not in output
    for word in words:
        assert word in output


def test_neither_is_asked_for_where_jobs_run_here_or_nothing_runs(paper: Paper) -> None:
    path = programs(paper)
    assert paper.snakemake("one", "-n", *SLURM, PATH=path).returncode == 0
    well(paper.snakemake("one", "-n", "--cores", "1", PATH=path))


def test_a_dry_run_writes_nothing(paper: Paper) -> None:
    well(paper.snakemake("-n"))
    assert not (paper.folder / "results").exists()
    assert not (paper.folder / "cache").exists()


def test_results_that_cannot_be_written_to_are_one_sentence(paper: Paper) -> None:
    (paper.folder / "results").write_text("a file")
    done = paper.snakemake("--cores", "1")
    assert done.returncode == 1
    assert "results/.config" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_no_configuration_in_this_folder(paper: Paper) -> None:
    done = paper.bare("-n")
    output = done.stdout + done.stderr
    assert done.returncode == 1
    assert "config/config.yaml: no such file in" in output
    assert "--configfile FILE" in output


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
