"""The repository's own workflow, cold: two Snakefiles that mean the same, and `config/minimal.yaml`."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tests.histories.warm import run_python, run_shell, well
from tests.workflow.world import build_world, paper, refused


def planned(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The jobs and their files, without times."""
    lines = re.sub(r"(shown-)[\w-]+", r"\1run", done.stdout).splitlines()
    return sorted(line for line in lines if line.startswith(("rule", "localrule", "    output:")))


def test_the_same_jobs_by_default_and_by_name(tmp_path: Path) -> None:
    world, files = paper(tmp_path / "paper", "one", "two"), ("workflow/Snakefile", "Snakefile")
    inner, outer = (planned(world.snakemake("prefill", "-n", snakefile=file)) for file in files)
    assert inner == outer != []
    for file in files:
        assert "run: snakemake prefill" in refused(world.snakemake("-n", snakefile=file))


HEAVY = ("torch", "transformers", "datasets")


@pytest.fixture
def guarded(tmp_path: Path) -> dict[str, str]:
    """An environment in which importing a heavy library is an error."""
    for name in HEAVY:
        (tmp_path / f"{name}.py").write_text(f"raise RuntimeError('{name} was imported')\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    return {"PYTHONPATH": path, "SCRATCH": str(tmp_path)}


def run(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run_python(["-m", *command], ROOT, cold=True, **variables)


def test_the_guard_works(guarded: dict[str, str]) -> None:
    done = run(["evaluation.scoring.job"], guarded)
    assert "was imported" in done.stderr


GOOD = "your workflow is in a good condition"
USAGE = "usage: python -m evaluation"
LIGHT = [
    ("snakemake -n prefill", "prefill_caches"),
    ("snakemake --lint", GOOD),
    ("snakemake --lint -s workflow/Snakefile", GOOD),
    ("evaluation --help", USAGE),
    ("evaluation status --help", USAGE),
    ("evaluation score --help", USAGE),
]


@pytest.mark.parametrize(("command", "expected"), LIGHT)
def test_without_them(guarded: dict[str, str], command: str, expected: str) -> None:
    done = well(run(command.split(), guarded))
    assert expected in done.stdout + done.stderr


def test_all_checkpoints_of_a_folder(tmp_path: Path) -> None:
    """Of `config/minimal.yaml` only the folder is written in; suites and data are this world's."""
    world = build_world(tmp_path)
    mirrors = yaml.safe_load(world.config.read_text())["mirrors"]
    shipped = (ROOT / "config" / "minimal.yaml").read_text()
    text = shipped.replace("/path/to/checkpoints", str(tmp_path / "ckpts" / "stage1"))
    text = text.replace("[stage1_ppl_slices, stage1_cf_core]", "[base]")
    world.config.write_text(text + f"suites: suites\nmirrors: {json.dumps(mirrors)}\n")
    for targets in (["prefill"], []):
        well(world.snakemake(*targets, cold=True))
    results = tmp_path / "eval_results" / "my_run"
    assert (results / "report.html").is_file()
    for step in (10, 20):
        assert (results / "by_checkpoint" / f"step_{step}" / "tier3_cf.json").is_file()
    (log,) = (results / "eval_logs" / "score").glob("10-*.log")
    line = log.read_text().splitlines()[0]  # the whole command, which runs in an empty environment
    assert " -m evaluation score --stage my_run --step 10 --planned " in line
    assert shlex.split(line)[0] == "cd"
    well(run_shell(f"env -i PATH=/usr/bin:/bin bash -c {shlex.quote(line)}", Path("/")))
