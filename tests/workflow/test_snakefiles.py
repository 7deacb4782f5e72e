"""The repository's own workflow, cold: two Snakefiles that mean the same, and `config/minimal.yaml`."""

import json
import shlex
from pathlib import Path

import yaml

from tests.conftest import ROOT
from tests.histories.warm import run_shell, well
from tests.workflow.world import build_world, jobs, paper, refused


def test_two_snakefiles_with_the_same_rules(tmp_path: Path) -> None:
    world = paper(tmp_path / "paper", "one", "two")
    for file in ("workflow/Snakefile", "Snakefile"):
        planned = well(world.snakemake("prefill", "-n", snakefile=file))
        assert jobs(planned) == {"prefill", "prefill_caches"}
        assert "run: snakemake prefill" in refused(world.snakemake("-n", snakefile=file))


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
