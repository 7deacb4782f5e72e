"""What stops a run: one sentence each, exit code 1, nothing half-written, nothing lost."""

import shutil
import time
from pathlib import Path

import pytest

from tests.histories.warm import well
from tests.tables import cases
from tests.workflow.paper import ROOT, Paper

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
