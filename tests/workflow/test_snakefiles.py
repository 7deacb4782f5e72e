"""Two Snakefiles, of which Snakemake finds one by itself: both mean the same."""

import re
from pathlib import Path

import pytest

from tests.histories.warm import run_python, well
from tests.workflow.paper import ROOT, Paper

EITHER = ([], ["-s", "workflow/Snakefile"], ["-s", "Snakefile"])


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


@pytest.mark.parametrize("which", EITHER, ids=["found", "workflow", "top"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(("--lint",), "your workflow is in a good condition"), (("-n", "prefill"), "prefill_slice")],
)
def test_from_the_root(
    tmp_path: Path, which: list[str], arguments: tuple[str, ...], expected: str
) -> None:
    command = ["-m", "snakemake", *arguments, *which]
    done = well(run_python(command, ROOT, cold=True, SCRATCH=str(tmp_path)))
    assert expected in done.stdout + done.stderr
