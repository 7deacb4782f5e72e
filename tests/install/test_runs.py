"""Real runs of the tiny configuration, away from the checkout."""

import json
import stat
from pathlib import Path

from tests.histories.warm import well
from tests.install.conftest import ROOT, Run

SUBMIT = """#!/bin/bash
# Runs a job in the background, with nothing of this environment, and prints its id.
env -i PATH=/usr/bin:/bin HOME="$HOME" setsid bash "$1" > "$1.log" 2>&1 &
echo $!
"""
APPTAINER = """#!/bin/bash
# Runs what it is given without a container; of `exec`, what stands behind the image.
[ "$1" = --version ] && { echo apptainer version 1.4.0; exit; }
while [ "${1%.sif}" = "$1" ]; do shift; done
shift
exec "$@"
"""


def scored(folder: Path) -> bool:
    file = folder / "results/stage1/by_checkpoint/step_20/tier3_cf.json"
    return "quiz" in json.loads(file.read_text())["tasks"]


def test_the_installed_package(run: Run, tiny: Path) -> None:
    """A stage end to end, from the Snakefile that `init` writes."""
    well(run("staged-evaluation", "init", "new", "--checkpoints", "resources/checkpoints/stage1"))
    (tiny / "new/Snakefile").rename(tiny / "Snakefile")
    done = well(run("snakemake", "--cores", "2", "stage1"))
    assert scored(tiny)
    assert str(ROOT) not in done.stdout + done.stderr.replace(str(ROOT / ".venv"), "")


def test_a_cluster_without_slurm(run: Run, tiny: Path) -> None:
    """Jobs that inherit nothing are submitted by a command."""
    executable(tiny / "submit.sh", SUBMIT)
    how = ("--executor", "cluster-generic", "--cluster-generic-submit-cmd", "./submit.sh")
    known = ("--jobs", "4", "--retries", "1", "--keep-going")
    which = ("-s", f"{ROOT}/workflow/Snakefile", "--configfile", "config/config.yaml")
    well(run("snakemake", "stage1", *which, *how, *known, is_installed=False))
    assert scored(tiny)


def test_in_an_image(run: Run, tiny: Path) -> None:
    """Every job's command is given to Apptainer, here a stand-in for it, and uses the image's Python."""
    executable(tiny / "bin/apptainer", APPTAINER)
    (tiny / "staged-evaluation.sif").touch()
    image = f"PATH={tiny}/bin:$PATH snakemake prefill --cores 2 --sdm apptainer"
    done = well(run("bash", "-c", f"{image} -s {ROOT}/workflow/Snakefile", is_installed=False))
    assert "Activating" in done.stderr + done.stdout
    log = next((tiny / "results/cache").glob("*/logs/tokenizer.log")).read_text()
    assert " python -m evaluation prefill" in log.splitlines()[0]


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
