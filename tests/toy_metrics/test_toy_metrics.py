"""A metric that an entry adds to each tier is in every file, table, figure, page and export."""

import os
import re
import shutil
from pathlib import Path

from evaluation.settings.tiers import TIERS
from tests.conftest import ROOT
from tests.histories.warm import run_python, well
from tests.tables import table

EDITS = table("toy_metrics/edits")


def test_a_metric_is_an_entry_and_at_most_a_formula() -> None:
    tiers = [edit["tier"] for edit in EDITS]
    assert {tier: tiers.count(tier) for tier in tiers} == {
        "tier2": 1,
        "tier3": 2,
        "tier4": 1,
        "tier5": 2,
    }


def test_every_reader_shows_them(tmp_path: Path) -> None:
    root = tmp_path / "package"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "evaluation", root / "evaluation", ignore=ignored)
    for edit in EDITS:
        path, before = root / "evaluation" / edit["file"], edit["before"]
        whole = path.read_text(encoding="utf-8")
        assert whole.count(before) == 1, edit
        path.write_text(whole.replace(before, edit["text"] + before), encoding="utf-8")
    path = os.pathsep.join([str(root), str(ROOT)])
    words = ["-W", "error", "-m", "tests.toy_metrics.readers", str(tmp_path / "results")]
    well(run_python(words, tmp_path, cold=True, PYTHONPATH=path, PYTHONSAFEPATH="1"))


NAMED = {
    "grading/completions.py",  # formulas, and keys of Tier5's file
    "grading/generated.py",
    "grading/tiers.py",
    "grading/units.py",
    "metrics/measures.py",  # formulas
    "metrics/positions.py",  # a key of Tier2's file
    "reporting/sharing/lm_eval_files.py",
    "reporting/pages/verified_answers.py",  # a way of decoding
    "reporting/viewer/samples.py",  # credits of single answers
    "results/columns.py",
    "withdrawn.py",
}
"""Modules outside of the registry that may name a metric: where it is computed, or is a key of a file."""


def test_nobody_else_knows_a_metric_by_name() -> None:
    names = {metric.name for tier in TIERS.values() for metric in tier.metrics}
    quoted = re.compile("|".join(f'"{name}"' for name in names))
    package = ROOT / "evaluation"
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if quoted.search(path.read_text(encoding="utf-8"))
    }
    assert found - {"settings/measured.py", "settings/tiers.py"} <= NAMED
