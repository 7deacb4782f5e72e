"""A checkpoint's logits compared with those of Nanotron's own code, run for it on the spot.

Nanotron lives in an environment of its own and needs a GPU; `nanotron_program` is what is run there.
It computes in bfloat16, so that its logits differ from exact ones by rounding, some 0.5 to 2 %; a
checkpoint that is misread is off by 16 % or more.
"""

import tempfile
import time
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import Checkpoint, read_architecture
from evaluation.checkpoints.verify import read_ids, relative_errors
from evaluation.errors import CheckpointError, ConfigError, NonFiniteError, ScoringError
from evaluation.files import write_json
from evaluation.interpreters import NotStarted, Program, is_python, refusal

TOLERANCE = 0.05
"""Relative L2 error: above bfloat16's rounding, below any misreading."""

ROWS, LENGTH = 4, 256
"""How many random ids are used where none are given."""

_MODULE = "evaluation.checkpoints.nanotron_program"


def nanotron_errors(
    checkpoint: Checkpoint, python: Path, *, ids: Path | None, seconds: float
) -> dict[str, float]:
    """Return `verify.relative_errors` against the logits of Nanotron's own code.

    Args:
        checkpoint: The checkpoint to compare.
        python: Python of an environment that has Nanotron.
        ids: A safetensors file with `input_ids` (B, T), and maybe `position_ids` in which every 0
            begins a document; random ids if None.
        seconds: Time limit of Nanotron's program.

    Returns:
        Relative L2 error for each kind of logits.

    Raises:
        ConfigError: The interpreter is not there, or lacks what Nanotron needs.
        CheckpointError: The checkpoint is not Nanotron's, or the ids do not fit it.
        ScoringError: Its program fails, takes too long, or writes something else.
        NonFiniteError: Logits are NaN or infinite.
    """
    if checkpoint.kind != "nanotron":
        raise CheckpointError(
            f"{checkpoint.path}: a Hugging Face folder, which Nanotron's code cannot load; give the "
            "Nanotron checkpoint"
        )
    check_complete(checkpoint)
    tensors = random_ids(checkpoint.vocab_size) if ids is None else read_ids(checkpoint, ids)
    _check_positions(tensors, ids)
    if not is_python(python):
        raise ConfigError(
            f"--python {python}: no such program; name the Python of an environment that has Nanotron"
        )
    with tempfile.TemporaryDirectory(prefix="nanotron-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _write_request(checkpoint, tensors, folder)
        _run(python, folder, seconds)
        return _compare(checkpoint, tensors["input_ids"], folder / "logits.safetensors")


def random_ids(vocab_size: int) -> dict[str, torch.Tensor]:
    """Return ids that are the same at every call; the second half of the rows has two documents.

    Args:
        vocab_size: Ids are below it.

    Returns:
        `input_ids` and `position_ids`, each (ROWS, LENGTH).
    """
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(vocab_size, (ROWS, LENGTH), generator=random)
    positions = torch.arange(LENGTH).repeat(ROWS, 1)
    positions[ROWS // 2 :, LENGTH // 3 :] -= LENGTH // 3
    return {"input_ids": ids, "position_ids": positions}


def _check_positions(tensors: dict[str, torch.Tensor], ids: Path | None) -> None:
    """Raise CheckpointError for a row that begins inside a document, which Nanotron's cannot."""
    positions = tensors.get("position_ids")
    if positions is not None and (positions[:, 0] != 0).any():
        raise CheckpointError(
            f"{ids}: `position_ids` of every row must begin with 0, where a document begins"
        )


def _write_request(checkpoint: Checkpoint, tensors: dict[str, torch.Tensor], folder: Path) -> None:
    arch = read_architecture(checkpoint)
    # Keys that are younger than the format, as they were computed before: Nanotron of today would
    # take its own defaults for them.
    config = {"rope_interleaved": True, "rope_theta": 10_000.0, **checkpoint.model_config}
    request = {
        "checkpoint": str(checkpoint.path.absolute()),
        "kind": "llama" if arch.llama else "qwen2",
        "model_config": config,
        "use_mup": arch.mup,
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
    program = Program(python, _MODULE, (str(folder),), folder, {"TOKENIZERS_PARALLELISM": "false"})
    try:
        ended = program.run(lambda: time.monotonic() < ends)
    except NotStarted as error:
        raise ConfigError(f"--python {python}: cannot be run ({error}); name another") from None
    if ended.code is None:
        raise ScoringError(
            f"--against nanotron: {python} did not end within {seconds:g} s; give it more by --limit, or "
            "see what its GPU is doing"
        )
    if (refused := refusal(folder)) is not None:
        raise ConfigError(
            f"--against nanotron: {python} cannot run it, as {refused}; name the Python of an "
            "environment that can by --python, on a node with a GPU"
        )
    if ended.code or not (folder / "logits.safetensors").is_file():
        raise ScoringError(
            f"--against nanotron: Nanotron's code in {python} gave no logits: it {ended}; load the "
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
            raise  # of the checkpoint itself
        what = str(error).replace(f"{written}: ", "")[:200]
        raise ScoringError(
            f"--against nanotron: what Nanotron's code gave cannot be compared ({what}); its version "
            "does not fit this checkpoint"
        ) from None
