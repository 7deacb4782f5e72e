"""What Inductor and Triton make for an A100 and an H100, compiled here without either."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRITON = ROOT / ".triton"
"""Triton, in a folder of its own: what finds it thinks that there may be a GPU."""
SHARED = {80: 166912, 90: 232448}
"""Bytes of shared memory that a block may have (CUDA C++ Programming Guide, compute capabilities)."""
MOST_OF_LAYER, MOST_OF_HEAD = 16, 2
MOST_STACK = 512
"""Bytes a thread; what Triton takes by itself for heads of 128 in float32 spills 14 KB."""


@pytest.fixture(scope="module")
def compiled():
    """What each graph became, for both."""
    assert TRITON.is_dir(), "Triton is not there: `make .triton/.complete` installs it"
    program = [sys.executable, "-W", "ignore", "-m", "benchmarks.kernels", "--few", "80", "90"]
    paths = {"PYTHONPATH": f"{ROOT}:{TRITON}"}
    run = subprocess.run(
        program, cwd=ROOT, env={**os.environ, **paths}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_both_are_compiled_for(compiled):
    assert len(compiled) == 12
    assert {found["sm"] for found in compiled} == set(SHARED)


def test_layers_and_head_are_few_kernels(compiled):
    for found in compiled:
        most = MOST_OF_HEAD if "head" in found else MOST_OF_LAYER
        assert 0 < found["kernels"] <= most, found


def test_kernels_fit_shared_memory_and_hardly_spill(compiled):
    for found in compiled:
        assert found["shared_bytes"] <= SHARED[found["sm"]], found
        assert found["stack_bytes"] <= MOST_STACK, found
    assert max(found["shared_bytes"] for found in compiled) > 50_000  # attention is among them
