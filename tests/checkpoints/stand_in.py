"""stand_in.py ACT -m MODULE FOLDER: in place of Nanotron's program, the checkpoint as we read it, rounded."""

import json
import os
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model

act, folder = sys.argv[1], Path(sys.argv[-1])
print("\x00 { noise\n" * 100)
if act == "die":
    os._exit(9)
request = json.loads((folder / "request.json").read_text())
model, given = (
    load_model(open_checkpoint(Path(request["checkpoint"]))),
    load_file(folder / "ids.safetensors"),
)
rows = zip(given["input_ids"].split(1), given["position_ids"].split(1), strict=True)
logits = torch.cat(
    [model(ids, position_ids=at, use_cache=False).logits for ids, at in rows]
).bfloat16()
if act == "nan":
    logits[0, 0, 0] = torch.nan
save_file(
    {**given, "logits": 1.1 * logits if act == "differ" else logits}, folder / "logits.safetensors"
)
