"""The weight files of a Hugging Face folder: listed, and checked against their index."""

import json
from pathlib import Path
from typing import Any

from evaluation.checkpoints.headers import Header, read_header
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint

_INDEX = "model.safetensors.index.json"


def read_headers(folder: Path) -> list[Header]:
    """Headers of all weight files, checked against the index if there is one.

    Raises IncompleteCheckpoint for missing files or tensors, UnsupportedCheckpoint if the weights
    are pickled.
    """
    if (folder / _INDEX).is_file():
        return _indexed(folder)
    single = folder / "model.safetensors"
    if single.is_file():
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
        if not path.is_file():
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
    try:
        content: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise CheckpointError(f"{path}: not JSON; download it again") from None
    places = content.get("weight_map") if isinstance(content, dict) else None
    sound = isinstance(places, dict) and all(
        isinstance(name, str) and name == Path(name).name for name in places.values()
    )
    if not isinstance(places, dict) or not sound or not places:
        raise CheckpointError(f"{path}: its `weight_map` is not a table of file names")
    return places
