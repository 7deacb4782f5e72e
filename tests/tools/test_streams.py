"""Streams of a shell that end early, are closed, full, or speak ASCII alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.world import ROOT, World

LINES = [
    ("a reader that ends at once", "run inspect CKPT | true; exit ${PIPESTATUS[0]}", {0, 141}, ""),
    ("a reader that ends early", "run inspect CKPT --json | head -n 1; exit ${PIPESTATUS[0]}", {0, 141}, ""),
    ("help into head", "run --help | head -n 1; exit ${PIPESTATUS[0]}", {0, 141}, ""),
    ("answers into head", "run loglikelihood CKPT --requests many.jsonl --output - 2> log | head -n 1; "
     "code=${PIPESTATUS[0]}; grep Traceback log >&2; exit $code", {0, 141}, ""),
    ("closed stderr", "run inspect CKPT 2>&-", {0}, ""),
    ("closed stderr, and an error", "run inspect nowhere 2>&-", {1}, ""),
    ("closed stdout", "run inspect CKPT >&-", {0, 1}, None),
    ("all closed", "run inspect nowhere <&- >&- 2>&-", {1}, ""),
    ("a full stdout", "run inspect CKPT > /dev/full", {1}, None),
    ("ascii alone", "PYTHONIOENCODING=ascii run inspect \u00fc-\U0001f600", {1}, "error: "),
    ("ascii alone, strict", "PYTHONIOENCODING=ascii:strict run inspect \u00fc-\U0001f600", {1}, "error: "),
    ("a path that is not UTF-8", "run inspect $'\\xff\\xfe'", {1}, "error: "),
    ("no locale", "LC_ALL=C PYTHONUTF8=0 run inspect \u00fc", {1}, "error: "),
    ("optimized", "PYTHONOPTIMIZE=2 run inspect CKPT --json", {0}, ""),
]  # fmt: skip
"""Name, line of bash, exit codes, and what stderr begins with (None: one sentence or nothing)."""


@pytest.mark.parametrize(
    ("line", "codes", "begins"), [case[1:] for case in LINES], ids=[case[0] for case in LINES]
)
def test_streams(
    world: World, checkpoint: Path, tmp_path: Path, line: str, codes: set[int], begins: str | None
) -> None:
    row = '{"context_tokens": [1], "continuation_tokens": [2]}\n'
    (tmp_path / "many.jsonl").write_text(row * 5000)
    run = f"{sys.executable} -m evaluation "
    done = subprocess.run(
        ["bash", "-c", line.replace("run ", run).replace("CKPT", str(checkpoint))],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        timeout=120,
    )
    said = done.stderr.decode("utf-8", "replace")
    assert done.returncode in codes, said
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert len(said.splitlines()) <= 1
    if begins is not None:
        assert said.startswith(begins)
        assert begins or not said
