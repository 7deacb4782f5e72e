"""`config/minimal.yaml`, as somebody with a folder of checkpoints would use it."""

import json
import shlex
import shutil
from pathlib import Path

import yaml

from tests.histories.warm import run_shell, well
from tests.workflow.paper import ROOT
from tests.workflow.world import World, build_world

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
