"""Compare a checkpoint's logits with stored reference logits, or with those of Nanotron's own code.

Nanotron has its own environment, in which `nanotron_program` runs, and needs a GPU. It computes in
bfloat16, so its logits differ from exact ones by rounding, about 0.5 to 2 %; those of a checkpoint that
is misread differ by 16 % or more.
"""

import tempfile
import time
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.headers import TORCH_NAMES, TensorEntry, read_header
from evaluation.checkpoints.load import load_model
from evaluation.errors import (
    CheckpointError,
    ConfigError,
    NonFiniteError,
    ScoringError,
    UnsupportedCheckpoint,
)
from evaluation.files import write_json
from evaluation.interpreters import NotStarted, PythonProgram, is_python, refusal

NANOTRON_TOLERANCE = 0.05
"""Relative L2 error: above the rounding of bfloat16, below the error of any misread checkpoint."""

NANOTRON_DTYPE = "bfloat16"
"""Dtype in which Nanotron's code runs: its attention on a GPU takes nothing wider."""

_ROWS, _LENGTH = 4, 256
"""Shape of the random ids that are used where none are given."""

_PROGRAM = "evaluation.checkpoints.nanotron_program"
_PACKED, _CAUSAL = "logits", "logits_causal"
_IDS, _POSITIONS = "input_ids", "position_ids"
_INTEGERS = ("I64", "I32", "I16", "I8", "U8")


def relative_errors(checkpoint: Checkpoint, reference: Path) -> dict[str, float]:
    """Compare a checkpoint's logits with reference logits.

    The model runs in float32, on the CPU. If the reference lacks the rows that pad the vocabulary,
    the comparison leaves them out.

    Args:
        reference: A safetensors file with `input_ids` (B, T) and one or both of `logits` (B, T, V) and
            `logits_causal` (B, T, V), which takes each row as one document. For `logits` of a model that
            masks documents, every 0 in `position_ids` (B, T) begins one; without them each row is one.

    Returns:
        For each kind of logits ||ours - theirs|| / ||theirs||, in fp64.

    Raises:
        CheckpointError: The reference does not fit.
        NonFiniteError: Logits are NaN or infinite.
    """
    tensors = _read_reference(checkpoint, reference)
    model = load_model(checkpoint, dtype=torch.float32)
    masks_documents = checkpoint.model_config.get("is_llama_config") is not True
    errors = {}
    for key in (_PACKED, _CAUSAL):
        if key in tensors:
            packed = key == _PACKED and masks_documents
            positions = tensors.get(_POSITIONS) if packed else None
            errors[key] = _error(model, tensors[_IDS], positions, tensors[key], reference)
    return errors


def _read_reference(checkpoint: Checkpoint, reference: Path) -> dict[str, torch.Tensor]:
    ids = _check_ids(reference)
    if _PACKED not in ids and _CAUSAL not in ids:
        raise CheckpointError(
            f"{reference}: needs `{_PACKED}` of shape (batch, length, vocabulary); store the logits"
        )
    for key in sorted({_PACKED, _CAUSAL} & ids.keys()):
        rows, length = ids[_IDS].shape
        _check_logits(key, ids[key], (rows, length, checkpoint.vocab_size), reference)
    return _read_tensors(checkpoint, reference, (_IDS, _POSITIONS, _PACKED, _CAUSAL))


def _read_ids(checkpoint: Checkpoint, path: Path) -> dict[str, torch.Tensor]:
    """Return `input_ids` (B, T), and `position_ids` (B, T) if the file has them, for Nanotron's code."""
    _check_ids(path)
    tensors = _read_tensors(checkpoint, path, (_IDS, _POSITIONS))
    if (
        _POSITIONS in tensors and tensors[_POSITIONS][:, 0].any()
    ):  # Nanotron never begins a row inside a document
        raise CheckpointError(
            f"{path}: `position_ids` of every row must begin with 0, where a document begins"
        )
    return tensors


def _check_ids(path: Path) -> dict[str, TensorEntry]:
    """Return the file's tensors; check the dtypes and shapes of `input_ids` and `position_ids`."""
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path}: not a file; give a safetensors file")
    tensors = read_header(path).tensors
    ids = tensors.get(_IDS)
    if ids is None or ids.dtype not in _INTEGERS or len(ids.shape) != 2 or 0 in ids.shape:
        raise CheckpointError(
            f"{path}: needs `input_ids`, integers of shape (batch, length); store them with the logits"
        )
    positions = tensors.get(_POSITIONS, ids)
    if positions.shape != ids.shape or positions.dtype not in _INTEGERS:
        raise CheckpointError(
            f"{path}: `position_ids` must be integers in the shape of `input_ids`; store them again"
        )
    return tensors


def _check_logits(
    key: str, tensor_entry: TensorEntry, most: tuple[int, int, int], reference: Path
) -> None:
    """Raise CheckpointError unless the logits are floats of shape `most`, or of a smaller vocabulary."""
    shape = tensor_entry.shape
    if tensor_entry.dtype not in TORCH_NAMES:
        raise CheckpointError(
            f"{reference}: `{key}` is {tensor_entry.dtype}; logits are one of {', '.join(TORCH_NAMES)}"
        )
    if len(shape) != 3 or shape[:2] != most[:2] or not 0 < shape[2] <= most[2]:
        raise CheckpointError(
            f"{reference}: `{key}` has shape {shape}, not {most}; give logits of this checkpoint"
        )


def _read_tensors(
    checkpoint: Checkpoint, path: Path, keys: tuple[str, ...]
) -> dict[str, torch.Tensor]:
    with safe_open(path, framework="pt") as file:
        tensors = {key: file.get_tensor(key) for key in keys if key in {*file.keys()}}
    lowest, highest = (int(bound) for bound in tensors[_IDS].aminmax())
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
                f"{reference}: row {row}: logits are NaN or infinite; compare with a finite checkpoint"
            )
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


def nanotron_errors(
    checkpoint: Checkpoint, python: Path, *, ids: Path | None, seconds: float
) -> dict[str, float]:
    """Return `relative_errors` against the logits of Nanotron's own code.

    Args:
        python: Python of an environment that has Nanotron.
        ids: A safetensors file with `input_ids` (B, T), and optionally `position_ids`, in which every
            0 begins a document; None: random ids.

    Returns:
        Relative L2 error for each kind of logits.

    Raises:
        ConfigError: The interpreter does not exist, or lacks a package that Nanotron needs.
        CheckpointError: The checkpoint is not Nanotron's, or the ids do not fit it.
        ScoringError: Nanotron's program fails, takes too long, or writes something else.
        NonFiniteError: Logits are NaN or infinite.
    """
    if checkpoint.kind != "nanotron":
        raise CheckpointError(
            f"{checkpoint.path}: a Hugging Face folder, which Nanotron's code cannot load; give the "
            "Nanotron checkpoint"
        )
    check_complete(checkpoint)
    tensors = _random_ids(checkpoint.vocab_size) if ids is None else _read_ids(checkpoint, ids)
    if not is_python(python):
        raise ConfigError(
            f"--python {python}: no such program; name the Python of an environment that has Nanotron"
        )
    with tempfile.TemporaryDirectory(prefix="nanotron-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _write_request(checkpoint, tensors, folder)
        _run(python, folder, seconds)
        return _compare(checkpoint, tensors["input_ids"], folder / "logits.safetensors")


def _random_ids(vocab_size: int) -> dict[str, torch.Tensor]:
    """Return the same ids at every call; each row of the second half has two documents."""
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(vocab_size, (_ROWS, _LENGTH), generator=random)
    positions = torch.arange(_LENGTH).repeat(_ROWS, 1)
    positions[_ROWS // 2 :, _LENGTH // 3 :] -= _LENGTH // 3
    return {"input_ids": ids, "position_ids": positions}


def _write_request(checkpoint: Checkpoint, tensors: dict[str, torch.Tensor], folder: Path) -> None:
    arch = checkpoint.architecture
    if arch.config_class is None:
        raise UnsupportedCheckpoint(
            f"{checkpoint.path}: {arch.label}, whose configuration today's Nanotron cannot build; "
            "compare it with stored logits (`--reference`)"
        )
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
    given = {name: tensor.long().contiguous() for name, tensor in tensors.items()}
    if "position_ids" not in given:
        ids = given["input_ids"]
        given["position_ids"] = torch.arange(ids.shape[1]).repeat(len(ids), 1)
    save_file(given, folder / "ids.safetensors")


def _run(python: Path, folder: Path, seconds: float) -> None:
    """Run Nanotron's program; raise ConfigError or ScoringError unless it writes logits."""
    ends = time.monotonic() + seconds
    program = PythonProgram(
        python, _PROGRAM, (str(folder),), folder, {"TOKENIZERS_PARALLELISM": "false"}
    )
    try:
        ended = program.run(lambda: time.monotonic() < ends)
    except NotStarted as error:
        raise ConfigError(f"--python {python}: cannot be run ({error}); name another") from None
    if ended.code is None:
        raise ScoringError(
            f"--against nanotron: {python} did not end within {seconds:g} s; allow more by --limit, or "
            "check whether its GPU is busy"
        )
    if (refused := refusal(folder)) is not None:
        raise ConfigError(
            f"--against nanotron: {python} cannot run it, as {refused}; by --python name the Python of "
            "an environment that can, on a node with a GPU"
        )
    if ended.code or not (folder / "logits.safetensors").is_file():
        raise ScoringError(
            f"--against nanotron: Nanotron's code in {python} wrote no logits: it {ended}; load the "
            "checkpoint there by hand to see why"
        )


def _compare(checkpoint: Checkpoint, ids: torch.Tensor, written: Path) -> dict[str, float]:
    try:
        with safe_open(written, framework="pt") as file:
            theirs = file.get_tensor("input_ids")
        if not torch.equal(theirs, ids.long()):
            raise CheckpointError(f"{written}: logits of other ids than those requested")
        return relative_errors(checkpoint, written)
    except NonFiniteError as error:
        raise NonFiniteError(str(error).replace(f"{written}: ", "--against nanotron: ")) from None
    except (CheckpointError, OSError, SafetensorError) as error:
        if isinstance(error, CheckpointError) and str(written) not in str(error):
            raise  # the error is about the checkpoint itself
        what = str(error).replace(f"{written}: ", "")[:200]
        raise ScoringError(
            f"--against nanotron: the logits of Nanotron's code cannot be compared ({what}); its version "
            "does not fit this checkpoint"
        ) from None
