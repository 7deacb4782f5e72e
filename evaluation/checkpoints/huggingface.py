"""The weight files of a Hugging Face folder: listed, and checked against their index."""

import math
from pathlib import Path
from typing import Any

from evaluation.checkpoints.documents import is_there, parse_json
from evaluation.checkpoints.headers import Header, read_header
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint

_INDEX = "model.safetensors.index.json"


def read_headers(folder: Path) -> list[Header]:
    """Headers of all weight files, checked against the index if there is one.

    Raises IncompleteCheckpoint for missing files or tensors, UnsupportedCheckpoint if the weights
    are pickled.
    """
    if is_there(folder / _INDEX):
        return _indexed(folder)
    single = folder / "model.safetensors"
    if is_there(single):
        return [read_header(single)]
    pickled = sorted(folder.glob("pytorch_model*.bin"))
    if pickled:
        raise UnsupportedCheckpoint(
            f"{pickled[0]}: pickled weights are never opened; save the model as safetensors "
            "(`save_pretrained`) first"
        )
    raise IncompleteCheckpoint(
        f"{single}: missing, and so is {_INDEX}; the folder has a config.json but no weights"
    )


def _indexed(folder: Path) -> list[Header]:
    places = _weight_map(folder / _INDEX)
    headers = {}
    for name in sorted(set(places.values())):
        path = folder / name
        if not is_there(path):
            raise IncompleteCheckpoint(
                f"{path}: missing, though {_INDEX} names it; wait until it is downloaded, or copy it"
            )
        headers[name] = read_header(path)
    for tensor, name in places.items():
        if tensor not in headers[name].tensors:
            raise IncompleteCheckpoint(
                f"{folder / name}: lacks {tensor}, which {_INDEX} places there; download it again"
            )
    for name, header in headers.items():
        foreign = sorted(t for t in header.tensors if places.get(t) != name)
        if foreign:
            raise CheckpointError(
                f"{folder / name}: holds {foreign[0]}, which {_INDEX} does not place there; "
                "the files are of different downloads, download them again"
            )
    return list(headers.values())


def _weight_map(path: Path) -> dict[str, str]:
    places: Any = parse_json(path).get("weight_map")
    if not isinstance(places, dict) or not places or not all(map(_is_file_name, places.values())):
        raise CheckpointError(
            f"{path}: its `weight_map` is not a table of file names; download it again"
        )
    return places


def _is_file_name(name: Any) -> bool:
    """Whether it names a file of the folder itself, and nothing outside it."""
    return isinstance(name, str) and name not in ("", ".", "..") and not set(name) & {"/", "\0"}


_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
_SIZES = (
    *("hidden_size", "intermediate_size", "moe_intermediate_size", "n_embd", "d_model"),
    *("vocab_size", "head_dim", "num_attention_heads", "num_key_value_heads", "n_head"),
    *("num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts"),
)


def check_sizes(config: dict[str, Any], headers: list[Header], folder: Path) -> None:
    """Raises CheckpointError for sizes that weights of this extent cannot have.

    transformers would build a model of any size first, and for a million layers never end.
    """
    entries = [entry for header in headers for entry in header.tensors.values()]
    largest = max(math.prod(entry.shape) for entry in entries)
    inner = config.get("text_config")
    for table in (config, inner if isinstance(inner, dict) else {}):
        for names, most in ((_LAYERS, len(entries)), (_SIZES, largest)):
            for name in names:
                value = table.get(name)
                if isinstance(value, int | float) and value > most:
                    raise CheckpointError(
                        f"{folder / 'config.json'}: `{name}` is {str(value)[:40]}, more than its weights "
                        f"can hold ({len(entries)} tensors, {largest:,} numbers in the largest); "
                        "config.json and weights are of different models"
                    )
