"""Compute a checkpoint's logits by Nanotron's own code, in a process of Nanotron's environment.

    request.json, ids.safetensors  ->  python -m evaluation.checkpoints.nanotron_program FOLDER
                                   ->  logits.safetensors, or refused.json with a sentence

`verify` runs this program. It imports nothing from this project, and imports Nanotron only after a check
of its requirements: without a GPU or flash-attn that import fails. Nanotron computes in bfloat16, as
its attention takes nothing wider.
"""

import dataclasses
import importlib.util
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

PACKAGES = ("torch", "safetensors", "nanotron", "flash_attn")

OVERRIDDEN = {
    "_attn_implementation": "flash_attention_2",
    "flex_attention_mask": None,
    "ring_attn_heads_k_stride": None,
    "log_attn_probs": False,
}
"""Keys that set how training computed, not what: other implementations need more than one GPU."""

REFUSED = 3
"""Exit code with a refused.json."""


def main() -> None:
    """Write logits for the request in the command line's folder, or the reason why it is refused."""
    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text())
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        _refuse(folder, f"it has no {' and no '.join(missing)}")
    import torch

    if not torch.cuda.is_available():
        _refuse(folder, "it sees no GPU, which Nanotron needs")
    _as_single_rank()
    model = _load(request, folder)
    _write_logits(model, request["heeds_documents"], folder)


def _refuse(folder: Path, sentence: str) -> NoReturn:
    (folder / "refused.json").write_text(json.dumps({"sentence": sentence}))
    sys.exit(REFUSED)


def _as_single_rank() -> None:
    """Set the environment variables that torchrun sets for one process on this machine."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    address = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    os.environ.update({**ranks, **address, "CUDA_DEVICE_MAX_CONNECTIONS": "1"})


def _load(request: dict[str, Any], folder: Path) -> Any:
    """Return Nanotron's model of the checkpoint, on the GPU."""
    import torch
    from nanotron.config import ParallelismArgs
    from nanotron.models import build_model
    from nanotron.parallel import ParallelContext
    from nanotron.serialize import load_weights
    from nanotron.trainer import CONFIG_TO_MODEL_CLASS, mark_tied_parameters

    config = _config(request, folder)
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


def _config(request: dict[str, Any], folder: Path) -> Any:
    """Return the model's configuration as Nanotron's dataclass."""
    from nanotron.config import models_config

    name = request["config_class"]
    config_class = getattr(models_config, name, None)
    if config_class is None:
        _refuse(folder, f"its Nanotron is older than this checkpoint and has no {name}")
    names = {field.name for field in dataclasses.fields(config_class)}
    given = dict(request["model_config"])
    unknown = sorted(key for key in given.keys() - names if given[key] not in (None, False))
    if unknown:
        _refuse(folder, f"its Nanotron does not know the key {unknown[0]} of model_config.json")
    given.update(OVERRIDDEN)
    if isinstance(given.get("moe_config"), dict):
        given["moe_config"] = models_config.MoEConfig(**given["moe_config"])
    config = config_class(**{key: value for key, value in given.items() if key in names})
    config._is_using_mup = request["use_mup"]  # as Nanotron's trainer does: no file records it
    return config


def _write_logits(model: Any, heeds_documents: bool, folder: Path) -> None:
    """Write `logits` (B, T, V); if documents matter also `logits_causal`, of rows as single documents."""
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "ids.safetensors")
    ids, positions = tensors["input_ids"], tensors["position_ids"]
    device = next(model.parameters()).device
    index = torch.arange(ids.shape[1]).expand_as(ids)
    requested = {"logits": positions}
    if heeds_documents:
        requested["logits_causal"] = index
    outputs = {"input_ids": ids, "position_ids": positions}
    with torch.inference_mode():
        for name, places in requested.items():
            rows = [
                _forward(model, heeds_documents, ids[row : row + 1], places[row : row + 1], device)
                for row in range(len(ids))
            ]
            outputs[name] = torch.cat(rows)
    save_file(outputs, folder / "writing.safetensors")
    os.rename(folder / "writing.safetensors", folder / "logits.safetensors")


def _forward(model: Any, heeds_documents: bool, ids: Any, positions: Any, device: Any) -> Any:
    """Return float32 logits (1, T, V) of one row on CPU."""
    import torch

    ids = ids.to(device)
    if heeds_documents:  # Qwen2 returns (B * T, V); a document begins at every position 0
        logits = model.model(input_ids=ids, position_ids=positions.to(device))
    else:  # Llama returns (T, B, V)
        mask = torch.ones_like(ids, dtype=torch.bool)
        logits = model.model(input_ids=ids, input_mask=mask).transpose(0, 1)
    return logits.reshape(1, ids.shape[1], -1).float().cpu().contiguous()


if __name__ == "__main__":
    main()
