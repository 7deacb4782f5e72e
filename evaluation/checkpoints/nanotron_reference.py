"""A checkpoint's logits compared with those of Nanotron's own code, run for it on the spot.

Nanotron lives in an environment of its own and needs a GPU; `nanotron_program` is what is run there.
It computes in bfloat16, so that its logits differ from exact ones by rounding, some 0.5 to 2 %; a
checkpoint that is misread is off by 16 % or more.
"""

import contextlib
import logging
import tempfile
import time
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.config_files import parse_json
from evaluation.checkpoints.format import Checkpoint, read_architecture
from evaluation.checkpoints.prefetch import available_bytes
from evaluation.checkpoints.verify import CAUSAL, PACKED, read_ids, relative_errors
from evaluation.errors import CheckpointError, ConfigError, NonFiniteError, ScoringError
from evaluation.files import write_json
from evaluation.interpreters import NotStarted, Program, is_python

log = logging.getLogger(__name__)

TOLERANCE = 0.05
"""Relative L2 error: above bfloat16's rounding, below any misreading."""

ROWS, LENGTH = 4, 256
"""How many random ids are used where none are given."""

SPARE_BYTES = 64 << 20
"""What its program may write besides its logits."""

LEAST_MEMORY = 1 << 30
"""Bytes that it leaves of the machine's memory."""

_MODULE = "evaluation.checkpoints.nanotron_program"


def nanotron_errors(
    checkpoint: Checkpoint, python: Path, *, ids: Path | None, seconds: float
) -> dict[str, float]:
    """Return `verify.relative_errors` against the logits that Nanotron's code gives in `python`.

    Args:
        ids: a safetensors file with `input_ids` (B, T), and maybe `position_ids` in which every 0
            begins a document; random ids if None.

    Raises:
        ConfigError: for an interpreter that is not there or lacks what Nanotron needs.
        CheckpointError: for a checkpoint that is not Nanotron's, or ids that do not fit it.
        ScoringError: if its program fails, takes too long, or writes something else.
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
        _run(python, folder, seconds, _most_bytes(checkpoint, tensors))
        return _compare(checkpoint, tensors["input_ids"], folder / "logits.safetensors")


def random_ids(vocab_size: int) -> dict[str, torch.Tensor]:
    """Return always the same ids (ROWS, LENGTH); the second half of the rows has two documents."""
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


def _most_bytes(checkpoint: Checkpoint, tensors: dict[str, torch.Tensor]) -> int:
    """Return what float32 logits of each kind take, and the ids, with something to spare."""
    per_id = len((PACKED, CAUSAL)) * 4 * checkpoint.vocab_size + 16
    return tensors["input_ids"].numel() * per_id + SPARE_BYTES


def _run(python: Path, folder: Path, seconds: float, most_bytes: int) -> None:
    """Run Nanotron's program; raise ConfigError or ScoringError unless it writes logits."""
    begin, stopped = time.monotonic(), ""

    def may_go_on() -> bool:
        nonlocal stopped
        stopped = _reached_limit(folder, time.monotonic() - begin, seconds, most_bytes)
        return not stopped

    program = Program(python, _MODULE, (str(folder),), folder, {"TOKENIZERS_PARALLELISM": "false"})
    try:
        ended = program.run(may_go_on)
    except NotStarted as error:
        raise ConfigError(f"--python {python}: cannot be run ({error}); name another") from None
    if stopped:
        raise ScoringError(f"--against nanotron: {python} {stopped}")
    refused = folder / "refused.json"
    if refused.is_file():
        raise ConfigError(
            f"--against nanotron: {python} cannot run it, as {_sentence(refused)}; name the Python of an "
            "environment that can by --python, on a node with a GPU"
        )
    written = folder / "logits.safetensors"
    if ended.code or not written.is_file():
        raise ScoringError(
            f"--against nanotron: Nanotron's code in {python} gave no logits: it {ended}; load the "
            "checkpoint there by hand to see why"
        )
    if written.stat().st_size > most_bytes:
        raise _not_comparable(f"a file of {written.stat().st_size >> 20:,} MB")


def _reached_limit(folder: Path, elapsed: float, seconds: float, most_bytes: int) -> str:
    """Return why the program has to be stopped; empty if it may go on."""
    if elapsed > seconds:
        return f"did not end within {seconds:g} s; give it more by --limit, or see what its GPU is doing"
    written = _bytes_in(folder)
    if written > most_bytes:
        return (
            f"wrote {written >> 20:,} MB into {folder.parent}, where its logits are no more "
            f"than {most_bytes >> 20:,} MB, and was stopped; its version does not fit this checkpoint"
        )
    left = available_bytes()
    if 0 < left < LEAST_MEMORY:
        return (
            f"left this machine {left >> 20:,} MB of memory and was stopped; use a larger one, or "
            "fewer ids by --ids"
        )
    return ""


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # renamed as we looked
            total += path.lstat().st_size
    return total


def _sentence(refused: Path) -> str:
    try:
        return str(parse_json(refused).get("sentence"))[:300]
    except CheckpointError:
        return "it did not say why"


def _compare(checkpoint: Checkpoint, ids: torch.Tensor, written: Path) -> dict[str, float]:
    try:
        with safe_open(written, framework="pt") as file:
            theirs = file.get_tensor("input_ids")
            kinds = [key for key in (PACKED, CAUSAL) if key in file.keys()]  # noqa: SIM118 - no dict
            words = {file.get_slice(key).get_shape()[-1] for key in kinds}
    except (OSError, SafetensorError) as error:
        raise _not_comparable(str(error)) from None
    if not torch.equal(theirs, ids.long()):
        raise _not_comparable("logits of other ids than those asked for")
    if words != {checkpoint.vocab_size}:
        raise _not_comparable(f"logits of {sorted(words)} words, not {checkpoint.vocab_size}")
    try:
        return _errors(checkpoint, written)
    except NonFiniteError as error:
        raise NonFiniteError(str(error).replace(f"{written}: ", "--against nanotron: ")) from None
    except CheckpointError as error:
        if str(written) not in str(error):
            raise
        raise _not_comparable(str(error).replace(f"{written}: ", "")) from None


def _errors(checkpoint: Checkpoint, written: Path) -> dict[str, float]:
    """Return the errors of our logits in float32, on the GPU where they fit."""
    if torch.cuda.is_available():
        try:
            return relative_errors(checkpoint, written, device="cuda")
        except torch.OutOfMemoryError:
            log.warning("%s does not fit the GPU in float32; it runs on the CPU", checkpoint.path)
        torch.cuda.empty_cache()
    return relative_errors(checkpoint, written)


def _not_comparable(what: str) -> ScoringError:
    return ScoringError(
        f"--against nanotron: what Nanotron's code gave cannot be compared ({what[:200]}); its "
        "version does not fit this checkpoint"
    )
