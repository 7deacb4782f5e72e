"""Compare a checkpoint's logits with stored reference logits, or with those of Nanotron's own code.

Nanotron has its own environment, in which `nanotron_program` runs, and needs a GPU. It computes in
bfloat16, so its logits differ from exact ones by rounding, about 0.5 to 2 %; those of a checkpoint that
is misread differ by 16 % or more.
"""

import math
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.headers import read_header
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, NonFiniteError, ScoringError
from evaluation.files import write_json
from evaluation.processes import run_python

NANOTRON_TOLERANCE = 0.05
"""Relative L2 error: above the rounding of bfloat16, below the error of any misread checkpoint."""

NANOTRON_DTYPE = "bfloat16"
"""Dtype in which Nanotron's code runs: its attention on a GPU takes nothing wider."""

_ROWS, _LENGTH = 4, 256
"""Shape of the random ids that Nanotron's code gets."""
_SECONDS = 1800


def relative_error(checkpoint: Checkpoint, reference: Path) -> float:
    """Return ||ours - theirs|| / ||theirs|| of a reference's logits, ours in float32.

    It is a safetensors file with `input_ids` (B, T) and `logits` (B, T, V), of which V may lack the rows
    that pad the vocabulary. With `position_ids` (B, T) a document begins at each 0, for a model that masks
    documents; without, each row is one document.

    Raises CheckpointError if it does not fit, NonFiniteError for logits that are NaN or infinite.
    """
    read_header(reference)
    tensors, rows = load_file(reference), checkpoint.vocab_size
    ids, theirs = (tensors.get(name, torch.empty(0)) for name in ("input_ids", "logits"))
    positions = tensors.get("position_ids", ids)
    fits = ids.ndim == 2 and ids.numel() and not ids.is_floating_point()
    fits = fits and ids.shape == theirs.shape[:2] == positions.shape
    if not fits or ids.min() < 0 or ids.max() >= rows or not 0 < theirs.shape[-1] <= rows:
        raise CheckpointError(
            f"{reference}: expected `input_ids` (B, T) below {rows}, with `logits` (B, T, V) and maybe "
            f"`position_ids` (B, T); store the logits of {checkpoint.path} for ids of its tokenizer"
        )
    model = load_model(checkpoint, dtype=torch.float32)
    masks = checkpoint.kind == "huggingface" or checkpoint.architecture.heeds_documents
    ours = torch.empty_like(theirs, dtype=torch.float64)
    for row, tokens in enumerate(ids.long()):
        place = {"position_ids": positions[row][None]} if masks and positions is not ids else {}
        with torch.inference_mode():
            logits = model(tokens[None], use_cache=False, **place).logits
        ours[row] = logits[0, :, : theirs.shape[-1]]
    error = float((ours - theirs).norm() / theirs.double().norm())
    if not math.isfinite(error):
        raise NonFiniteError(f"{reference}: logits are NaN or infinite, or theirs are all zero")
    return error


def nanotron_error(checkpoint: Checkpoint, python: Path) -> float:
    """Return `relative_error` against the logits of Nanotron's own code for random ids."""
    check_complete(checkpoint)
    if checkpoint.kind != "nanotron":
        raise CheckpointError(
            f"{checkpoint.path}: not of Nanotron; use --reference with its logits"
        )
    with tempfile.TemporaryDirectory(prefix="nanotron-") as name:
        write_request(checkpoint, Path(name))
        return relative_error(checkpoint, run_nanotron(python, Path(name)))


def write_request(checkpoint: Checkpoint, folder: Path) -> None:
    """Write what Nanotron's program reads: ids, always the same, and the checkpoint's configuration."""
    random, arch = torch.Generator().manual_seed(0), checkpoint.architecture
    ids = torch.randint(checkpoint.vocab_size, (_ROWS, _LENGTH), generator=random)
    positions = torch.arange(_LENGTH).repeat(_ROWS, 1)
    positions[_ROWS // 2 :, _LENGTH // 3 :] -= _LENGTH // 3  # two documents in each of these rows
    save_file({"input_ids": ids, "position_ids": positions}, folder / "ids.safetensors")
    request = {
        "checkpoint": str(checkpoint.path.absolute()),
        "config_class": f"{type(arch).__name__}Config",
        "heeds_documents": arch.heeds_documents,
        # Checkpoints older than these keys were computed so; today's Nanotron has other defaults.
        "model_config": {"rope_interleaved": True, "rope_theta": 1e4, **checkpoint.model_config},
        "use_mup": arch.mup,
        "dtype": NANOTRON_DTYPE,
    }
    write_json(folder / "request.json", request)


def run_nanotron(python: Path, folder: Path) -> Path:
    """Run Nanotron's program; return its logits, or raise ScoringError."""
    output, module = folder / "logits.safetensors", "evaluation.checkpoints.nanotron_program"
    ended = run_python(python, module, (str(folder),), folder, {}, _SECONDS)
    if not output.is_file():
        raise ScoringError(
            f"--against nanotron: {python} wrote no logits: it {ended}; by --python name the Python of an "
            "environment that has Nanotron, on a node with a GPU"
        )
    return output
