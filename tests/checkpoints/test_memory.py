"""Peak host memory of loading, measured in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.checkpoints.nanotron import llama, make_checkpoint
from tests.conftest import ROOT

MEASURE = r"""
import re, sys
from pathlib import Path
import torch
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from tests.checkpoints.nanotron import llama, make_checkpoint

def memory(kind):  # VmRSS now, VmHWM at its peak; getrusage would tell the parent's peak
    text = Path("/proc/self/status").read_text()
    return int(re.search(rf"{kind}:\s+(\d+) kB", text)[1]) * 1024

make_checkpoint(Path(sys.argv[2]), llama())
load_model(open_checkpoint(Path(sys.argv[2])))  # imports everything, and warms up the allocator
before = memory('VmRSS')
checkpoint = open_checkpoint(Path(sys.argv[1]))
model = load_model(checkpoint, dtype=getattr(torch, sys.argv[3]))
weights = sum(value.numel() * value.element_size() for value in model.parameters())
print(weights, memory("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("tied", "dtype"), [(False, "float32"), (True, "bfloat16")])
def test_weights_are_in_memory_once(tmp_path: Path, tied: bool, dtype: str) -> None:
    """At most 1.3 times the weights, whatever dtype they are read as."""
    config = llama(
        hidden_size=1024,
        intermediate_size=2048,
        num_attention_heads=16,
        num_key_value_heads=8,
        num_hidden_layers=2,
        vocab_size=16_384,
        tie_word_embeddings=tied,
        rope_interleaved=True,
    )
    make_checkpoint(tmp_path / "1", config, tp=2, dtype=torch.bfloat16 if tied else torch.float32)
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "1"), str(tmp_path / "0"), dtype]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    weights, added = map(int, done.stdout.split())
    assert weights > 60e6
    assert added < 1.3 * weights
