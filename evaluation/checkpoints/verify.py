"""A checkpoint's logits beside reference logits, for instance of the code that trained it."""

from pathlib import Path

import torch
from safetensors.torch import load_file

from evaluation.checkpoints.completeness import check_tokenizer_fits
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.headers import read_header
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, NonFiniteError

PACKED, CAUSAL = "logits", "logits_causal"


def relative_error(checkpoint: Checkpoint, reference: Path) -> float:
    """The largest of `relative_errors`."""
    return max(relative_errors(checkpoint, reference).values())


def relative_errors(checkpoint: Checkpoint, reference: Path) -> dict[str, float]:
    """||ours - theirs|| / ||theirs|| in fp64 for each kind of logits that the reference holds.

    The reference is a safetensors file with `input_ids` (B, T) and `logits` (B, T, V), given
    `position_ids` (B, T) in which every 0 begins a document where the model heeds documents, and
    maybe `logits_causal`, of the same ids as one document a row. The model runs in float32. Where
    the reference lacks the rows that pad the vocabulary, so do we.
    Raises CheckpointError for a reference that does not fit, NonFiniteError for NaN.
    """
    tensors = _read_reference(checkpoint, reference)
    model = load_model(checkpoint, dtype=torch.float32)
    heeds_documents = checkpoint.model_config.get("is_llama_config") is not True
    found = {}
    for key in (PACKED, CAUSAL):
        if key not in tensors:
            continue
        packed = key == PACKED and heeds_documents
        positions = tensors.get("position_ids") if packed else None
        found[key] = _error(model, tensors["input_ids"], positions, tensors[key], reference)
    return found


def _read_reference(checkpoint: Checkpoint, reference: Path) -> dict[str, torch.Tensor]:
    read_header(reference)
    tensors = load_file(reference)
    ids = tensors.get("input_ids")
    if ids is None or ids.ndim != 2 or ids.is_floating_point() or not ids.numel():
        raise CheckpointError(f"{reference}: needs `input_ids`, integers of shape (batch, length)")
    if PACKED not in tensors and CAUSAL not in tensors:
        raise CheckpointError(f"{reference}: needs `{PACKED}` of shape (batch, length, vocabulary)")
    for key in {PACKED, CAUSAL} & tensors.keys():
        shape = tensors[key].shape
        if shape[:2] != ids.shape or len(shape) != 3 or not 0 < shape[2] <= checkpoint.vocab_size:
            raise CheckpointError(
                f"{reference}: `{key}` has shape {tuple(shape)}, but input_ids and the checkpoint "
                f"make {(*ids.shape, checkpoint.vocab_size)}"
            )
    if "position_ids" in tensors and tensors["position_ids"].shape != ids.shape:
        raise CheckpointError(f"{reference}: `position_ids` and `input_ids` differ in shape")
    if int(ids.min()) < 0:
        raise CheckpointError(f"{reference}: `input_ids` holds a negative id")
    check_tokenizer_fits(checkpoint, int(ids.max()) + 1)
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
            raise NonFiniteError(f"{reference}: row {row}: logits are NaN or infinite")
        difference += float((ours - expected).square().sum())
        norm += float(expected.square().sum())
    if norm == 0:
        raise CheckpointError(f"{reference}: all its logits are zero")
    return float((difference / norm) ** 0.5)


def _documents(positions: torch.Tensor) -> dict[str, torch.Tensor]:
    """Positions counted from the last 0 (transformers begins a document wherever they jump).

    Nothing where a row is one document, which any model takes.
    """
    index = torch.arange(len(positions))
    starts = torch.where(positions == 0, index, 0).cummax(0).values
    return {"position_ids": (index - starts)[None]} if starts.any() else {}
