"""Compute a checkpoint's logits by Nanotron's own code, in a process of Nanotron's environment.

    request.json, ids.safetensors  ->  python -m evaluation.checkpoints.nanotron_program FOLDER
                                   ->  logits.safetensors

`verify` runs this program. It imports nothing from this project.
"""

import dataclasses
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

_OVERRIDDEN = {
    "_attn_implementation": "flash_attention_2",
    "flex_attention_mask": None,
    "ring_attn_heads_k_stride": None,
    "log_attn_probs": False,
}
"""Keys that set how training computed, not what: other implementations need more than one GPU."""


def _load(request: dict[str, Any]) -> Any:
    """Return Nanotron's model of the checkpoint, on the GPU."""
    import torch
    from nanotron.config import ParallelismArgs, models_config
    from nanotron.models import build_model
    from nanotron.parallel import ParallelContext
    from nanotron.serialize import load_weights
    from nanotron.trainer import CONFIG_TO_MODEL_CLASS, mark_tied_parameters

    config_class = getattr(models_config, request["config_class"])
    names = {field.name for field in dataclasses.fields(config_class)}
    given = {**request["model_config"], **_OVERRIDDEN}
    if isinstance(given.get("moe_config"), dict):
        given["moe_config"] = models_config.MoEConfig(**given["moe_config"])
    config = config_class(**{key: value for key, value in given.items() if key in names})
    config._is_using_mup = request["use_mup"]  # as Nanotron's trainer does: no file records it
    one = {f"{kind}_parallel_size": 1 for kind in ("tensor", "pipeline", "data")}
    context, parallel = ParallelContext(**one), ParallelismArgs(dp=1, pp=1, tp=1)
    parts = {"parallel_context": context, "parallel_config": parallel}
    model_class = CONFIG_TO_MODEL_CLASS[request["config_class"]]
    model = build_model(
        model_builder=lambda: model_class(config=config, random_states=None, **parts),
        parallel_context=context,
        dtype=getattr(torch, request["dtype"]),
    )
    mark_tied_parameters(model=model, **parts)
    load_weights(model=model, parallel_context=context, root_folder=Path(request["checkpoint"]))
    return model.eval()


def main() -> None:
    """Write float32 `logits` (B, T, V) for the request in the command line's folder."""
    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text())
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    address = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    os.environ.update({**ranks, **address, "CUDA_DEVICE_MAX_CONNECTIONS": "1"})
    import torch
    from safetensors.torch import load_file, save_file

    model, tensors, rows = _load(request), load_file(folder / "ids.safetensors"), []
    device = next(model.parameters()).device
    for ids, positions in zip(tensors["input_ids"], tensors["position_ids"], strict=True):
        given = {"input_ids": ids[None].to(device)}
        if request["heeds_documents"]:  # Qwen2; a document begins at every position 0
            given["position_ids"] = positions[None].to(device)
        else:
            given["input_mask"] = torch.ones_like(given["input_ids"], dtype=torch.bool)
        with torch.inference_mode():
            rows.append(model.model(**given).reshape(len(ids), -1).float().cpu())
    save_file({**tensors, "logits": torch.stack(rows)}, folder / "logits.safetensors")


if __name__ == "__main__":
    main()
