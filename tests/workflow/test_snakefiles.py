"""The repository's own workflow, cold: two Snakefiles that mean the same, parsed lightly, and `config/minimal.yaml`."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tests.histories.warm import run_python, run_shell, well
from tests.workflow.paper import Paper
from tests.workflow.world import World, build_world

LINT = (("--lint",), "your workflow is in a good condition")
COLD = [([], ("-n", "prefill"), "prefill_slice"), ([], *LINT)]
COLD += [(["-s", file], *LINT) for file in ("workflow/Snakefile", "Snakefile")]


def planned(text: str) -> list[str]:
    """The jobs and their files, without times."""
    lines = re.sub(r"(\.snakemake/checked/)[\w-]+", r"\1run", text).splitlines()
    return sorted(line for line in lines if line.startswith(("rule", "localrule", "    output:")))


def test_the_same_jobs_by_default_and_by_name(tmp_path: Path) -> None:
    paper = Paper(tmp_path / "paper", {"one": {}, "two": {"bridge": {"stage": "one"}}})
    for targets in ([], ["two"], ["prefill"]):
        inner, outer = (
            paper.snakemake(*targets, "-n", "--verbose", snakefile=file)
            for file in ("workflow/Snakefile", "Snakefile")
        )
        assert (inner.returncode, outer.returncode) == (0, 0), inner.stdout + outer.stdout
        assert planned(inner.stdout) == planned(outer.stdout) != []
    assert "rule score_one" not in outer.stdout  # of the last, prefill


@pytest.mark.parametrize(("which", "arguments", "expected"), COLD)
def test_from_the_root(
    tmp_path: Path, which: list[str], arguments: tuple[str, ...], expected: str
) -> None:
    command = ["-m", "snakemake", *arguments, *which]
    done = well(run_python(command, ROOT, cold=True, SCRATCH=str(tmp_path)))
    assert expected in done.stdout + done.stderr


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


def test_the_default_workflow_parses_without_them(guarded: dict[str, str]) -> None:
    done = run(["snakemake", "--list-rules"], guarded)
    assert done.returncode == 0, done.stderr
    rules = done.stdout.split()
    assert {"all", "prefill", "stage1", "stage2", "stage3", "stage4"} <= set(rules)


def test_a_missing_checkpoint_stops_the_dry_run_in_one_sentence(guarded: dict[str, str]) -> None:
    done = run(["snakemake", "-n", "stage1"], guarded)
    assert done.returncode == 1
    output = done.stdout + done.stderr
    assert "ckpts/stage1/2000: no checkpoint there" in output
    assert "was imported" not in output


def test_an_unset_variable_is_named(
    guarded: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del guarded["SCRATCH"]
    monkeypatch.delenv("SCRATCH", raising=False)
    done = run(["snakemake", "-n", "stage1"], guarded)
    assert done.returncode == 1
    assert "$SCRATCH, which is not set: run `export SCRATCH=" in done.stdout + done.stderr


@pytest.mark.parametrize("command", [["--help"], ["status", "--help"], ["score", "--help"]])
def test_help_imports_nothing_heavy(guarded: dict[str, str], command: list[str]) -> None:
    done = run(["evaluation", *command], guarded)
    assert done.returncode == 0, done.stderr
    assert "usage: python -m evaluation" in done.stdout


SHIPPED = (ROOT / "config" / "minimal.yaml").read_text()


def test_as_it_is_it_says_which_folder_is_missing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.config.write_text(SHIPPED)
    shutil.copytree(ROOT / "task_suites", tmp_path / "task_suites")
    done = world.snakemake("-n")
    assert done.returncode == 1
    assert "stages.my_run.checkpoints: /path/to/checkpoints: no such folder" in done.stdout


def test_all_checkpoints_of_a_folder(tmp_path: Path) -> None:
    """Only the folder is written in; suites and data are this world's."""
    world = build_world(tmp_path)
    mirrors = yaml.safe_load(world.config.read_text())["mirrors"]
    text = SHIPPED.replace("/path/to/checkpoints", str(tmp_path / "ckpts" / "stage1"))
    text = text.replace("[stage1_ppl_slices, stage1_cf_core]", "[base]")
    world.config.write_text(text + f"suites: suites\nmirrors: {json.dumps(mirrors)}\n")
    for targets in (["prefill"], []):
        well(world.snakemake(*targets, cold=True))
    results = tmp_path / "eval_results" / "my_run"
    assert (results / "report.html").is_file()
    for step in (10, 20):
        assert (results / "by_checkpoint" / f"step_{step}" / "tier3_cf.json").is_file()
    log = (results / "eval_logs" / "slurm" / "my_run_step_10.log").read_text()
    pasted(log.splitlines()[0], "score --scores-only --stage my_run --step 10")


def pasted(line: str, command: str) -> None:
    """A log's first line is the whole command: it runs in an empty environment."""
    assert line.endswith(f"-m evaluation {command}")
    assert shlex.split(line)[0] == "cd"
    done = run_shell(f"env -i PATH=/usr/bin:/bin bash -c {shlex.quote(line)}", Path("/"))
    assert done.returncode == 0, done.stderr
