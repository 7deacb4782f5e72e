"""Each way as far as the plan of a run; `test_runs.py` runs some of them."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.histories.warm import well
from tests.install.conftest import ROOT, TINY, Run

SNAKEFILE = f"{ROOT}/workflow/Snakefile"
CONFIG = "config/config.yaml"


def rules(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The rules of a dry run."""
    words = [line.split() for line in well(done).stdout.splitlines()]
    return {word[0] for word in words if len(word) == 2 and word[1].isdecimal()} - {"total"}


def tracked(*folders: str) -> set[str]:
    done = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_wheel_has_every_file_of_the_package(site: Path) -> None:
    assert {file for file in tracked("evaluation") if not (site / file).is_file()} == set()


def test_a_new_folder_from_the_installed_package(run: Run, tmp_path: Path) -> None:
    checkpoints = str(TINY / "resources/checkpoints/stage1")
    made = well(run("staged-evaluation", "init", "my_run", "--checkpoints", checkpoints))
    assert "snakemake prefill --cores 4" in made.stdout
    found = rules(run("snakemake", "-n", "prefill", folder="my_run"))
    assert found >= {"prefill", "prefill_caches"}
    profile = ("--profile", "slurm_profile")
    assert rules(run("snakemake", "-n", "prefill", *profile, folder="my_run")) == found
    checked = run("staged-evaluation", "doctor", folder="my_run")
    assert "ok: configuration" in checked.stdout
    assert "make" not in checked.stdout.split()
    again = run("staged-evaluation", "init", "my_run", "--checkpoints", checkpoints)
    assert (again.returncode, "is there already" in again.stderr) == (1, True)
    named = ("--checkpoints", checkpoints, "--suites")
    well(run("python", "-m", "evaluation", "init", "other", *named))
    assert (tmp_path / "other/task_suites/stage1_cf_core.yaml").is_file()


def test_the_snakefile_of_a_checkout_from_another_folder(run: Run, tiny: Path) -> None:
    moved = (tiny / CONFIG).rename(tiny / "config/mine.yaml")
    named = ("-s", SNAKEFILE, "--configfile", str(moved))
    (tiny / "elsewhere").mkdir()
    planned = run("snakemake", "-n", "prefill", *named, folder="elsewhere", is_installed=False)
    assert rules(planned) >= {"prefill", "prefill_caches"}


MODULE = """
configfile: "config/config.yaml"
module {name}:
    snakefile: "{snakefile}"
    config: {config}
use rule * from {name}{names}
"""


@pytest.mark.parametrize("begin", ["ev_", ""])
def test_a_module_of_a_workflow(run: Run, tiny: Path, begin: str) -> None:
    """Without new names, and with all of the configuration, it is what snakedeploy writes."""
    names, config = (" as ev_*", 'config["evaluation"]') if begin else ("", "config")
    if begin:
        content = yaml.safe_load((tiny / CONFIG).read_text())
        (tiny / CONFIG).write_text(yaml.safe_dump({"evaluation": content, "mine": 1}))
    (tiny / "workflow").mkdir()
    text = MODULE.format(name="ev", snakefile=SNAKEFILE, config=config, names=names)
    (tiny / "workflow/Snakefile").write_text(text)
    memory = ("--set-resources", f"{begin}prefill_caches:mem_mb=7")
    planned = run("snakemake", "-n", f"{begin}prefill", *memory, is_installed=False)
    assert rules(planned) >= {f"{begin}prefill_caches"}
    assert len(re.findall("[ ,]mem_mb=7", planned.stdout)) == 1
