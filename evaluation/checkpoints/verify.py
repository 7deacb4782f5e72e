"""Compare a checkpoint's logits with stored reference logits, or with those of Nanotron's own code.

Nanotron has its own environment, in which `nanotron_program` runs, and needs a GPU. It computes in
bfloat16, so its logits differ from exact ones by rounding, about 0.5 to 2 %; those of a checkpoint that
is misread differ by 16 % or more.
"""

import tempfile
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.headers import read_header
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, ConfigError, NonFiniteError, ScoringError
from evaluation.files import write_json
from evaluation.processes import NotStarted, PythonProgram

NANOTRON_TOLERANCE = 0.05
"""Relative L2 error: above the rounding of bfloat16, below the error of any misread checkpoint."""

NANOTRON_DTYPE = "bfloat16"
"""Dtype in which Nanotron's code runs: its attention on a GPU takes nothing wider."""

_ROWS, _LENGTH = 4, 256
"""Shape of the random ids that Nanotron's code gets."""
_SECONDS = 1800


def relative_errors(checkpoint: Checkpoint, reference: Path) -> dict[str, float]:
    """Compare a checkpoint's logits, in float32 on the CPU, with reference logits.

    Args:
        reference: A safetensors file with `input_ids` (B, T) and `logits` or `logits_causal` (B, T, V), of
            which V may lack the rows that pad the vocabulary. `logits_causal` takes each row as one
            document, and so does `logits` but for a model that masks documents, which every 0 in
            `position_ids` (B, T) begins.

    Returns:
        For each kind of logits ||ours - theirs|| / ||theirs||, in fp64.

    Raises:
        CheckpointError: The reference does not fit.
        NonFiniteError: Logits are NaN or infinite.
    """
    tensors = _read_reference(checkpoint, reference)
    ids, positions = tensors["input_ids"].long(), tensors.get("position_ids")
    model = load_model(checkpoint, dtype=torch.float32)
    masks = checkpoint.kind == "huggingface" or checkpoint.architecture.heeds_documents
    places = {"logits": positions if masks else None, "logits_causal": None}
    return {
        key: _error(model, ids, place, tensors[key], reference)
        for key, place in places.items()
        if key in tensors
    }


def _read_reference(checkpoint: Checkpoint, reference: Path) -> dict[str, torch.Tensor]:
    read_header(reference)
    tensors, rows = load_file(reference), checkpoint.vocab_size
    ids = tensors.get("input_ids", torch.empty(0))
    logits = [tensors[key] for key in ("logits", "logits_causal") if key in tensors]
    like_ids = [tensors.get("position_ids", ids).shape, *(values.shape[:2] for values in logits)]
    is_real = logits and all(values.is_floating_point() for values in logits)
    if not (is_real and ids.ndim == 2 and ids.numel() and not ids.is_floating_point()):
        problem = "it lacks `input_ids`, integers of shape (batch, length), or real `logits`"
    elif ids.min() < 0 or ids.max() >= rows:
        problem = f"`input_ids` holds {int(ids.min())} to {int(ids.max())}, but the embedding has {rows} rows"
    elif {*like_ids} != {ids.shape} or not all(0 < values.shape[-1] <= rows for values in logits):
        problem = f"its shapes are not those of `input_ids` {tuple(ids.shape)} and of {rows} rows"
    else:
        return tensors
    raise CheckpointError(
        f"{reference}: {problem}; store the logits of {checkpoint.path} for ids of its tokenizer"
    )


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
        output = model(ids[row : row + 1], use_cache=False, **place)
        expected = theirs[row].double()  # (T, V)
        ours = output.logits[0, :, : expected.shape[-1]].double()
        if not (ours.isfinite().all() and expected.isfinite().all()):
            raise NonFiniteError(f"{reference}: row {row}: logits are NaN or infinite")
        difference += float((ours - expected).square().sum())
        norm += float(expected.square().sum())
    if norm == 0:
        raise CheckpointError(f"{reference}: all its logits are zero; store them again")
    return float((difference / norm) ** 0.5)


def _documents(positions: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return `position_ids` that count from the last 0; transformers begins a document where they jump.

    A row that is one document needs none: the result is empty.
    """
    index = torch.arange(len(positions))
    starts = torch.where(positions == 0, index, 0).cummax(0).values
    return {"position_ids": (index - starts)[None]} if starts.any() else {}


def nanotron_errors(checkpoint: Checkpoint, python: Path) -> dict[str, float]:
    """Return `relative_errors` against the logits of Nanotron's own code for random ids."""
    check_complete(checkpoint)
    if checkpoint.kind != "nanotron" or checkpoint.architecture.config_class is None:
        raise CheckpointError(
            f"{checkpoint.path}: today's Nanotron cannot build its model; compare it with stored logits "
            "(`--reference`)"
        )
    with tempfile.TemporaryDirectory(prefix="nanotron-", ignore_cleanup_errors=True) as name:
        write_request(checkpoint, Path(name))
        written = run_nanotron(python, Path(name))
        try:
            return relative_errors(checkpoint, written)
        except CheckpointError as error:
            what = str(error).replace(str(written), "the logits of Nanotron's code")
            raise ScoringError(f"--against nanotron: {what}") from None


def write_request(checkpoint: Checkpoint, folder: Path) -> None:
    """Write what Nanotron's program reads: ids, and the checkpoint's configuration.

    The ids are the same at every call; each row of the second half has two documents.
    """
    random, arch = torch.Generator().manual_seed(0), checkpoint.architecture
    ids = torch.randint(checkpoint.vocab_size, (_ROWS, _LENGTH), generator=random)
    positions = torch.arange(_LENGTH).repeat(_ROWS, 1)
    positions[_ROWS // 2 :, _LENGTH // 3 :] -= _LENGTH // 3
    save_file({"input_ids": ids, "position_ids": positions}, folder / "ids.safetensors")
    # Checkpoints older than these two keys were computed with these values; today's Nanotron has
    # other defaults.
    config = {"rope_interleaved": True, "rope_theta": 10_000.0, **checkpoint.model_config}
    request = {
        "checkpoint": str(checkpoint.path.absolute()),
        "config_class": arch.config_class,
        "heeds_documents": arch.heeds_documents,
        "model_config": config,
        "use_mup": arch.mup,
        "dtype": NANOTRON_DTYPE,
    }
    write_json(folder / "request.json", request)


def run_nanotron(python: Path, folder: Path) -> Path:
    """Run Nanotron's program; return its logits, or raise ConfigError or ScoringError."""
    ends, module = time.monotonic() + _SECONDS, "evaluation.checkpoints.nanotron_program"
    program = PythonProgram(
        python, module, (str(folder),), folder, {"TOKENIZERS_PARALLELISM": "false"}
    )
    try:
        ended = program.run(lambda: time.monotonic() < ends)
    except NotStarted as error:
        raise ConfigError(f"--python {python}: cannot be run ({error}); name another") from None
    if ended.code != 0 or not (folder / "logits.safetensors").is_file():
        raise ScoringError(
            f"--against nanotron: {python} wrote no logits: it {ended}; by --python name the Python of an "
            "environment that has Nanotron, on a node with a GPU"
        )
    return folder / "logits.safetensors"
