"""Real runs of the tiny configuration, away from the checkout."""

import json
from pathlib import Path

from tests.histories.warm import well
from tests.install.conftest import ROOT, Run


def scored(folder: Path) -> bool:
    file = folder / "results/stage1/by_checkpoint/step_20/tier3_cf.json"
    return "quiz" in json.loads(file.read_text())["tasks"]


def test_the_installed_package(run: Run, tiny: Path) -> None:
    """A stage end to end, from the Snakefile that `init` writes."""
    well(run("staged-evaluation", "init", "new", "--checkpoints", "resources/checkpoints/stage1"))
    (tiny / "new/Snakefile").rename(tiny / "Snakefile")
    well(run("snakemake", "--cores", "2", "prefill"))
    done = well(run("snakemake", "--cores", "2", "stage1"))
    assert scored(tiny)
    assert str(ROOT) not in done.stdout + done.stderr.replace(str(ROOT / ".venv"), "")
