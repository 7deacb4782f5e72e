"""A checkpoint's logits compared with reference logits, for instance of the code that trained it."""

from pathlib import Path

import torch
from safetensors import safe_open

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.headers import TensorEntry, read_header
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, NonFiniteError

PACKED, CAUSAL = "logits", "logits_causal"
IDS, POSITIONS = "input_ids", "position_ids"
INTEGERS = ("I64", "I32", "I16", "I8", "U8")
FLOATS = ("F64", "F32", "BF16", "F16")


def relative_errors(checkpoint: Checkpoint, reference: Path) -> dict[str, float]:
    """Compare a checkpoint's logits with reference logits.

    The model runs in float32, on the CPU. Where the reference lacks the rows that pad the
    vocabulary, they are left out here, too.

    Args:
        checkpoint: The checkpoint to compare.
        reference: A safetensors file with `input_ids` (B, T) and `logits` (B, T, V), or `logits_causal`
            (B, T, V) of the same ids as one document a row, or both. Where the model heeds documents,
            every 0 of `position_ids` (B, T) begins one of `logits`; without them each row is one.

    Returns:
        For each kind of logits ||ours - theirs|| / ||theirs||, in fp64.

    Raises:
        CheckpointError: The reference does not fit.
        NonFiniteError: Logits are NaN or infinite.
    """
    tensors = _read_reference(checkpoint, reference)
    model = load_model(checkpoint, dtype=torch.float32)
    heeds_documents = checkpoint.model_config.get("is_llama_config") is not True
    found = {}
    for key in (PACKED, CAUSAL):
        if key in tensors:
            packed = key == PACKED and heeds_documents
            positions = tensors.get(POSITIONS) if packed else None
            found[key] = _error(model, tensors[IDS], positions, tensors[key], reference)
    return found


def read_ids(checkpoint: Checkpoint, path: Path) -> dict[str, torch.Tensor]:
    """Read the ids of a safetensors file.

    Args:
        checkpoint: The checkpoint that will score the ids.
        path: The file.

    Returns:
        `input_ids` (B, T), and `position_ids` (B, T) if the file has them.

    Raises:
        CheckpointError: It is no such file, or does not fit the checkpoint.
    """
    return _read_tensors(checkpoint, path, _check_ids(path), (IDS, POSITIONS))


def _read_reference(checkpoint: Checkpoint, reference: Path) -> dict[str, torch.Tensor]:
    found = _check_ids(reference)
    if PACKED not in found and CAUSAL not in found:
        raise CheckpointError(
            f"{reference}: needs `{PACKED}` of shape (batch, length, vocabulary); store the logits"
        )
    for key in sorted({PACKED, CAUSAL} & found.keys()):
        rows, length = found[IDS].shape
        _check_logits(key, found[key], (rows, length, checkpoint.vocab_size), reference)
    return _read_tensors(checkpoint, reference, found, (IDS, POSITIONS, PACKED, CAUSAL))


def _check_ids(path: Path) -> dict[str, TensorEntry]:
    """Return the file's tensors, of which `input_ids` and `position_ids` are of the right kind."""
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path}: not a file; give a safetensors file")
    found = read_header(path).tensors
    ids = found.get(IDS)
    if ids is None or ids.dtype not in INTEGERS or len(ids.shape) != 2 or 0 in ids.shape:
        raise CheckpointError(
            f"{path}: needs `input_ids`, integers of shape (batch, length); store them beside the logits"
        )
    positions = found.get(POSITIONS, ids)
    if positions.shape != ids.shape or positions.dtype not in INTEGERS:
        raise CheckpointError(
            f"{path}: `position_ids` must be integers in the shape of `input_ids`; store them again"
        )
    return found


def _check_logits(
    key: str, found: TensorEntry, most: tuple[int, int, int], reference: Path
) -> None:
    """Raise CheckpointError unless they are floats of that shape, or of fewer vocabulary rows."""
    shape = found.shape
    if found.dtype not in FLOATS:
        raise CheckpointError(
            f"{reference}: `{key}` is {found.dtype}; logits are one of {', '.join(FLOATS)}"
        )
    if len(shape) != 3 or shape[:2] != most[:2] or not 0 < shape[2] <= most[2]:
        raise CheckpointError(
            f"{reference}: `{key}` has shape {shape}, but input_ids and the checkpoint make {most}; take the logits of this checkpoint"
        )


def _read_tensors(
    checkpoint: Checkpoint, path: Path, found: dict[str, TensorEntry], keys: tuple[str, ...]
) -> dict[str, torch.Tensor]:
    with safe_open(path, framework="pt") as file:
        tensors = {key: file.get_tensor(key) for key in keys if key in found}
    lowest, highest = (int(bound) for bound in tensors[IDS].aminmax())
    if lowest < 0:
        raise CheckpointError(f"{path}: `input_ids` holds a negative id; store the ids again")
    if highest >= checkpoint.vocab_size:
        raise CheckpointError(
            f"{path}: `input_ids` holds {highest}, but the embedding has {checkpoint.vocab_size} rows in "
            f"{checkpoint.path}; give ids of the tokenizer that it was trained with"
        )
    return tensors


@torch.inference_mode()
def _error(
    model: torch.nn.Module,
    ids: torch.Tensor,
    positions: torch.Tensor | None,
    theirs: torch.Tensor,
    reference: Path,
) -> float:
    difference = norm = 0.0
    for row in range(len(ids)):
        place = {} if positions is None else _documents(positions[row])
        output = model(ids[row : row + 1].long(), use_cache=False, **place)
        expected = theirs[row].double()  # (T, V)
        ours = output.logits[0, :, : expected.shape[-1]].double()
        if not (ours.isfinite().all() and expected.isfinite().all()):
            raise NonFiniteError(
                f"{reference}: row {row}: logits are NaN or infinite; compare with a checkpoint that gives finite ones"
            )
        difference += float((ours - expected).square().sum())
        norm += float(expected.square().sum())
    if norm == 0:
        raise CheckpointError(f"{reference}: all its logits are zero; store them again")
    return float((difference / norm) ** 0.5)


def _documents(positions: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return positions counted from the last 0 (transformers begins a document wherever they jump).

    Nothing where a row is one document, which any model takes.
    """
    index = torch.arange(len(positions))
    starts = torch.where(positions == 0, index, 0).cummax(0).values
    return {"position_ids": (index - starts)[None]} if starts.any() else {}
