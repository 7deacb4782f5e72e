"""Snakemake's lines of the documentation plan a run as they are typed, with `-n` after them."""

import re
import shlex
from typing import Any

import pytest
import yaml

from tests.histories.warm import run_python, well
from tests.test_docs import PAGES
from tests.workflow.paper import ROOT, Paper

LINE = re.compile(r"(?m)^\s*(?:\w+=\S+ )*snakemake ([^`\n]*)$")
SCRATCH = "scratch"
QUIZ = {
    "tasks": {
        "quiz": {"dataset": "made/quiz", "choices": "c", "gold": "g", "context": "{{ q }}"},
    }
}
STAGES: dict[str, dict[str, Any]] = {
    "stage1": {},
    "stage2": {},
    "stage3": {"steps": [1000, 4000], "suites": ["quiz"]},
    "stage4": {},
}
NEEDS = {
    "cluster-generic": "a plugin that is not installed",
    "--software-deployment-method": "conda or apptainer",
    "--report": "results",
    "--unlock": "no plan",
    ".test": "its own folder, which tests of the tiny run have",
    "/clone": "a path of the reader's",
}
"""Words of lines that are not planned, and what they need."""


def documented_lines() -> dict[str, str]:
    """Each line after `snakemake`, with the first page that has it; lines that end with a backslash go on."""
    lines: dict[str, str] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for block in re.findall(r"(?ms)^```\w*\n(.*?)^```|^((?:    .*\n)+)", text):
            for line in LINE.findall("".join(block)):
                bare = " ".join(shlex.split(line, comments=True))
                lines.setdefault(bare, page.name)
    return lines


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Paper:
    """A folder like a checkout, whose two configurations are of stages on paper."""
    root = tmp_path_factory.mktemp("documented")
    paper = Paper(root / "paper", STAGES)
    (paper.folder / "suites" / "quiz.yaml").write_text(yaml.safe_dump(QUIZ))
    for step in STAGES["stage3"]["steps"]:
        checkpoint = paper.folder / "ckpts" / "2" / str(step)
        checkpoint.mkdir()
        (checkpoint / "config.json").write_text("{}")
    for name in ("Snakefile", "workflow", "slurm_profile", "profiles", "evaluation"):
        (paper.folder / name).symlink_to(ROOT / name)
    (paper.folder / "config").mkdir()
    scratch = str(paper.folder / SCRATCH / "eval_results")
    for name, results in (("config", scratch), ("demo", ".demo/results")):
        content = yaml.safe_dump({**paper.content, "results": results}, sort_keys=False)
        (paper.folder / "config" / f"{name}.yaml").write_text(content)
    return paper


LINES = documented_lines()
PLANNED = [line for line in LINES if not any(word in line for word in NEEDS)]


def test_lines_are_found() -> None:
    assert len(PLANNED) > 10
    assert all(any(word in line for line in LINES) for word in NEEDS)


@pytest.mark.parametrize("line", PLANNED)
def test_a_documented_line_plans_a_run(checkout: Paper, line: str) -> None:
    scratch = str(checkout.folder / SCRATCH)
    words = [word.replace("$SCRATCH", scratch) for word in shlex.split(line)]
    done = well(run_python(["-m", "snakemake", *words, "-n"], checkout.folder))
    assert "score_" in done.stdout or "prefill" in done.stdout
