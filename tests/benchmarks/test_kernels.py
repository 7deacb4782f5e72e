"""What Inductor and Triton make for an A100 and an H100, compiled here without either."""

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

TRITON = ROOT / ".triton"
"""Triton, in a folder of its own: what finds it thinks that there may be a GPU."""
SHARED = {80: 166912, 90: 232448}
"""Bytes of shared memory that a block may have (CUDA C++ Programming Guide, compute capabilities)."""
MOST_OF_LAYER, MOST_OF_HEAD = 16, 2
MOST_STACK = 512
"""Bytes a thread; what Triton takes by itself for heads of 128 in float32 spills 14 KB."""


@pytest.fixture(scope="module")
def compiled():
    """What each graph became, on both."""
    if not TRITON.is_dir():
        pytest.skip(f"no {TRITON}: `make .triton/.complete` installs it")
    program = [sys.executable, "-W", "ignore", "-m", "benchmarks.kernels", "--few"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{TRITON}"}
    found = []
    for sm in SHARED:
        run = subprocess.run(
            [*program, str(sm)], cwd=ROOT, env=environment, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr[-3000:]
        found += [json.loads(line) for line in run.stdout.splitlines()]
    return found


def test_each_is_compiled_for_by_itself(compiled):
    by_sm = {sm: [found for found in compiled if found["sm"] == sm] for sm in SHARED}
    assert [len(found) for found in by_sm.values()] == [5, 5]
    assert by_sm[80] != [{**found, "sm": 80} for found in by_sm[90]]


def test_layers_and_head_are_few_kernels(compiled):
    for found in compiled:
        most = MOST_OF_HEAD if "head" in found else MOST_OF_LAYER
        assert 0 < found["kernels"] <= most, found


def test_kernels_fit_shared_memory_and_hardly_spill(compiled):
    for found in compiled:
        assert found["shared_bytes"] <= SHARED[found["sm"]], found
        assert found["stack_bytes"] <= MOST_STACK, found
    assert max(found["shared_bytes"] for found in compiled) > 50_000  # attention is among them
