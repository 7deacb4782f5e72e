"""A Tier2 metric is an entry of `settings/measured.py`; files, table and deltas then have it."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

BEFORE = '    _LOSS("nats_per_token",'
ENTRY = """    Metric(
        "tokens_per_byte",
        unit="tokens per byte",
        is_secondary=True,
        numerator="tokens",
        denominator="bytes",
    ),
"""
PROGRAM = """
import json, sys
from pathlib import Path

import pyarrow.parquet as pq

from evaluation.reporting.report import report_stage
from tests.bridge.folders import make_plans, write_side

plans = make_plans(Path(sys.argv[1]), steps=(10,), tiers=("slices",))
plan = plans["second"]
plan.checkpoint(10).mkdir(parents=True)
for folder, step in ((plan.bridge_folder, 100), (plan.step_folder(10), 10)):
    write_side(folder, plan, step=step, seed=step)
assert report_stage(plan, plans) == []
rows = pq.read_table(plan.results / "summary.parquet").to_pylist()
print(json.dumps([row for row in rows if row["metric"] == "tokens_per_byte"]))
"""


def test_a_metric_is_one_entry(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "evaluation", tmp_path / "evaluation", ignore=ignored)
    path = tmp_path / "evaluation/settings/measured.py"
    text = path.read_text(encoding="utf-8")
    assert text.count(BEFORE) == 1
    path.write_text(text.replace(BEFORE, ENTRY + BEFORE), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "results")],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"value": 0.25' in done.stdout
    assert '"delta": 0.0' in done.stdout
