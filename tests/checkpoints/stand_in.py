"""stand_in.py ACT -m MODULE FOLDER: in place of Nanotron's program, the tests' own forward pass, rounded."""

import json
import os
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tests.checkpoints.nanotron import forward

act, folder = sys.argv[1], Path(sys.argv[-1])
print("\x00 { noise\n" * 100)
if act == "die":
    os._exit(9)
request = json.loads((folder / "request.json").read_text())
config, given = request["model_config"], load_file(folder / "ids.safetensors")
if act == "rope":
    config["rope_interleaved"] = not config["rope_interleaved"]
whole = load_file(Path(request["checkpoint"]).parent / "whole.safetensors")
rows = zip(given["input_ids"], given["position_ids"], strict=True)
logits = torch.stack(
    [
        forward(whole, config, ids, places if request["heeds_documents"] else None, mup=request["use_mup"])
        for ids, places in rows
    ]
)  # fmt: skip
if act == "nan":
    logits[0, 0, 0] = torch.nan
save_file({**given, "logits": logits.bfloat16()}, folder / "logits.safetensors")
