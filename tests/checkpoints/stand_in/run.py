"""run.py ACT -m MODULE ARGUMENTS: a Python that has Nanotron and a GPU, or lacks what ACT says."""

import os
import runpy
import sys
from pathlib import Path

import torch

act = sys.argv[1]
os.environ["STAND_IN"] = act
here = Path(__file__).parent
sys.path[0] = str(here)
if act in ("nanotron", "flash_attn"):  # is not installed there
    import importlib.util

    real = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name == act else real(name, *rest)
if act != "no GPU":
    torch.cuda.is_available = lambda: True  # type: ignore[method-assign]
module = sys.argv[3]
sys.argv = [module, *sys.argv[4:]]
runpy.run_module(module, run_name="__main__", alter_sys=True)
