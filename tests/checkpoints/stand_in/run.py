"""run.py ACT -m MODULE ARGUMENTS: a Python that has Nanotron and a GPU, or lacks what ACT says."""

import os
import runpy
import sys
from pathlib import Path

act = sys.argv[1]
os.environ["STAND_IN"] = act
here = Path(__file__).parent
sys.path[0] = str(here)
if act == "nanotron":  # is not installed there
    sys.path.pop(0)
module = sys.argv[3]
sys.argv = [module, *sys.argv[4:]]
runpy.run_module(module, run_name="__main__", alter_sys=True)
