"""Compute a checkpoint's logits by Nanotron's own code, in a process of Nanotron's environment.

    request.json, ids.safetensors  ->  python -m evaluation.checkpoints.nanotron_program FOLDER
                                   ->  logits.safetensors

`verify` runs this program. It imports nothing from this project. Nanotron needs a GPU and flash-attn, and
computes in bfloat16, as its attention takes nothing wider.
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


def main() -> None:
    """Write logits for the request in the command line's folder."""
    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text())
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    address = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    os.environ.update({**ranks, **address, "CUDA_DEVICE_MAX_CONNECTIONS": "1"})
    _write_logits(_load(request), request["heeds_documents"], folder)


def _load(request: dict[str, Any]) -> Any:
    """Return Nanotron's model of the checkpoint, on the GPU."""
    import torch
    from nanotron.config import ParallelismArgs
    from nanotron.models import build_model
    from nanotron.parallel import ParallelContext
    from nanotron.serialize import load_weights
    from nanotron.trainer import CONFIG_TO_MODEL_CLASS, mark_tied_parameters

    config = _config(request)
    parallel = ParallelismArgs(dp=1, pp=1, tp=1)
    context = ParallelContext(
        tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1
    )
    model_class = CONFIG_TO_MODEL_CLASS[type(config).__name__]
    model = build_model(
        model_builder=lambda: model_class(
            config=config, parallel_context=context, parallel_config=parallel, random_states=None
        ),
        parallel_context=context,
        dtype=getattr(torch, request["dtype"]),
    )
    mark_tied_parameters(model=model, parallel_context=context, parallel_config=parallel)
    load_weights(model=model, parallel_context=context, root_folder=Path(request["checkpoint"]))
    return model.eval()


def _config(request: dict[str, Any]) -> Any:
    """Return the model's configuration as Nanotron's dataclass."""
    from nanotron.config import models_config

    config_class = getattr(models_config, request["config_class"])
    names = {field.name for field in dataclasses.fields(config_class)}
    given = {**request["model_config"], **_OVERRIDDEN}
    if isinstance(given.get("moe_config"), dict):
        given["moe_config"] = models_config.MoEConfig(**given["moe_config"])
    config = config_class(**{key: value for key, value in given.items() if key in names})
    config._is_using_mup = request["use_mup"]  # as Nanotron's trainer does: no file records it
    return config


def _write_logits(model: Any, heeds_documents: bool, folder: Path) -> None:
    """Write float32 `logits` (B, T, V) of each row."""
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "ids.safetensors")
    device, rows = next(model.parameters()).device, []
    given = (tensors[name].to(device) for name in ("input_ids", "position_ids"))
    for ids, positions in zip(*given, strict=True):
        with torch.inference_mode():
            if heeds_documents:  # Qwen2 returns (T, V); a document begins at every position 0
                logits = model.model(input_ids=ids[None], position_ids=positions[None])
            else:  # Llama returns (T, 1, V)
                mask = torch.ones_like(ids[None], dtype=torch.bool)
                logits = model.model(input_ids=ids[None], input_mask=mask)
        rows.append(logits.reshape(len(ids), -1).float().cpu())
    save_file({**tensors, "logits": torch.stack(rows)}, folder / "writing.safetensors")
    os.rename(folder / "writing.safetensors", folder / "logits.safetensors")


if __name__ == "__main__":
    main()
