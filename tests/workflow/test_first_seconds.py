"""What stops a run: one sentence each, exit code 1, nothing half-written, nothing lost."""

import shutil
import time
from pathlib import Path

import pytest

from tests.histories.warm import well
from tests.tables import cases
from tests.workflow.paper import ROOT, Paper, refused

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
        (folder / name).symlink_to(str(shutil.which(name)))
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return str(folder)


REFUSES = {"sbatch": "exit 1", "squeue": "exit 1", "scontrol": "exit 1"}


@pytest.mark.parametrize(("target", "words"), cases("workflow/names", "unknown_targets"))
def test_an_unknown_target(paper: Paper, target: str, words: list[str]) -> None:
    said = refused(paper.snakemake(target, "-n"))
    assert "No rule to produce" not in said
    for word in ["nothing here is called", *words]:
        assert word in said


def test_known_targets(paper: Paper) -> None:
    files = [
        f"results/one/{name}" for name in ("summary.csv", "by_checkpoint/step_10/tier2_ppl.json")
    ]
    targets = ["ablation_A", "score_one_from_10", *files]
    well(paper.snakemake(*targets, "-n", "--set-resources", "shared_scoring:checkpoints=2"))


CLUSTERS: dict[str, tuple[dict[str, str], list[str]]] = {
    "no sbatch": ({}, ["sbatch: no such command", "login node", "--cores N"]),
    "the account as shipped": (REFUSES, ["YOUR_ACCOUNT, as shipped"]),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_that_cannot_be_used(paper: Paper, name: str) -> None:
    scripts, words = CLUSTERS[name]
    begin = time.monotonic()
    said = refused(paper.snakemake("one", *SLURM, PATH=programs(paper, **scripts)))
    assert time.monotonic() - begin < 60
    assert "sbatch call" not in said
    for word in words:
        assert word in said


def test_neither_is_asked_for_where_jobs_run_here_or_nothing_runs(paper: Paper) -> None:
    path = programs(paper)
    well(paper.snakemake("one", "-n", *SLURM, PATH=path))
    well(paper.snakemake("one", "-n", "--cores", "1", PATH=path))


def test_results_that_cannot_be_written_to_are_one_sentence(paper: Paper) -> None:
    (paper.folder / "results").write_text("a file")
    assert "results/.config" in refused(paper.snakemake("--cores", "1"))


def test_no_configuration_in_this_folder(paper: Paper) -> None:
    said = refused(paper.bare("-n"))
    assert "config/config.yaml: no such file in" in said
    assert "--configfile FILE" in said
