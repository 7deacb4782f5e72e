"""`python -m benchmarks.gpu` on CPU with a tiny model, where nothing else is installed."""

import json
import re
from functools import partial
from pathlib import Path

import torch

from benchmarks.gpu import work
from benchmarks.gpu.__main__ import main
from evaluation.scoring.window import Request
from tests.conftest import ROOT
from tests.histories.warm import run_python, well

BARE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"snakemake", "datasets", "altair", "jsonschema"}:
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Missing())
"""
SMALL = "--device cpu --questions 4 --blocks 2 --sample 2 --completions 0".split()


def tiny(folder: Path, output: Path) -> list[str]:
    """Arguments that measure the tiny model alone."""
    given = ["--models", "tiny", "--row-tokens", "256"]
    return [*given, "--scratch", str(folder), "--output", str(output)]


def test_a_whole_run_on_a_bare_machine(tmp_path: Path) -> None:
    """With the scores of the plain loop, and no file left but the figures."""
    (tmp_path / "sitecustomize.py").write_text(BARE)
    run = partial(
        run_python, folder=ROOT, cold=True, PYTHONPATH=f"{tmp_path}:{ROOT}", OMP_NUM_THREADS="1"
    )
    assert "is not installed" in run(["-c", "import jsonschema"]).stderr
    output = tmp_path / "found.json"
    done = well(run(["-m", "benchmarks.gpu", *SMALL, *tiny(tmp_path, output)]))
    assert re.search(r"tiny\.tier3_mmlu_5shot\.times_faster +[\d.]+x +>= 20x\n", done.stdout)
    assert not list(tmp_path.glob("bench-gpu-*"))
    figures = json.loads(output.read_text())["models"]["tiny"]
    parts = {name: part for name, part in figures.items() if name.startswith("tier")}
    assert len(parts) == 2 + 3
    for name, part in parts.items():
        assert 0 < part["peak_share"] < 1.5, name  # the peak of so small shapes is no peak
        assert part["tokens_per_second"] > 0
        assert part.get("largest_difference", 0) < 1e-4
        assert ("times_faster" in part) == name.startswith("tier3")


def test_completions_are_those_of_transformers(tmp_path: Path) -> None:
    output = tmp_path / "found.json"
    assert main([*SMALL, "--completions", "3", *tiny(tmp_path, output)]) == 0
    found = json.loads(output.read_text())["models"]["tiny"]["completions"]
    assert found["equal"] == 1
    assert found["tokens_per_second"] > 0


def test_work_is_that_of_a_trie() -> None:
    requests = [
        Request((1, 2), (3, 4)),  # reads 1 2 3, asks at 2 and 3
        Request((1, 2), (3, 5)),  # reads the same
        Request((1, 2), (6,)),  # asks at 2, which is asked already
        Request((1,), (2,)),  # asks at 1
        Request((7, 8), (9, 9)),  # reads 7 8 9
    ]
    assert work.of_requests(requests) == work.Work(tokens=6, pairs=12, queries=5)
    assert work.of_requests(requests * 2) == work.of_requests(requests)


def test_work_of_blocks() -> None:
    tokens = torch.zeros(2, 4)
    assert work.of_blocks(tokens) == work.Work(tokens=8, pairs=20, queries=6)
    starts = torch.tensor([0, 3, 6])
    assert work.of_blocks(tokens, starts) == work.Work(tokens=8, pairs=6 + 1 + 3 + 3, queries=4)
