"""Ways to damage a checkpoint folder, as `damage.yaml` writes them down."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.torch import load_file, save_file

from tests.checkpoints.nanotron import TRAINING, llama, moe, qwen2, rewrite, shard_paths

NORM = "model.final_layer_norm.pp_block.weight"
QKV = "model.decoder.1.pp_block.attn.qkv_proj.weight"


def norm(folder: Path) -> Path:
    return shard_paths(folder, NORM)[0]


def qkv(folder: Path, rank: int = 0) -> Path:
    return shard_paths(folder, QKV)[rank]


def slices(folder: Path, text: str) -> None:
    rewrite(qkv(folder), local_global_slices_pairs=text.replace("*", "|None,None,None"))


def config(folder: Path, **changes: Any) -> None:
    """Changes keys of a Nanotron checkpoint's configuration, or of a Hugging Face folder's."""
    own = folder / "model_config.json"
    path = own if own.exists() else folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def model(folder: Path, content: Any) -> None:
    (folder / "model_config.json").write_text(json.dumps(content))


def training(folder: Path, without: str = "", **changes: Any) -> None:
    kept = {key: value for key, value in (TRAINING | changes).items() if key != without}
    (folder / "config.yaml").write_text(yaml.safe_dump(kept))


def index(folder: Path, places: Any) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def tensors(folder: Path, changes: dict[str, torch.Tensor | None]) -> None:
    path = folder / "model.safetensors"
    changed = load_file(path) | changes
    save_file({k: v for k, v in changed.items() if v is not None}, path, {"format": "pt"})


NAMES = {
    **globals(),
    "shutil": shutil,
    "llama": llama,
    "moe": moe,
    "qwen2": qwen2,
    "rewrite": rewrite,
}


def damage(folder: Path, line: str) -> None:
    """Does what a line of `damage.yaml` says."""
    eval(line, {**NAMES, "f": folder})
