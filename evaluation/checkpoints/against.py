"""A checkpoint's logits beside those of Nanotron's own code, run for it on the spot.

Nanotron lives in an environment of its own and needs a GPU; `nanotron_program` is what is run there.
It computes in bfloat16, so that its logits differ from exact ones by rounding, some 0.5 to 2 %; a
wrong reading of a checkpoint is off by 16 % or more.
"""

import contextlib
import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from evaluation.checkpoints.architecture import read_architecture
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.documents import parse_json
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.host_memory import available_bytes
from evaluation.checkpoints.verify import CAUSAL, PACKED, read_ids, relative_errors
from evaluation.errors import CheckpointError, ConfigError, NonFiniteError, ScoringError
from evaluation.files import write_json
from evaluation.interpreters import NotStarted, Program, is_python

log = logging.getLogger(__name__)

TOLERANCE = 0.05
"""Relative L2 error: above bfloat16's rounding, below any wrong reading."""

ROWS, LENGTH = 4, 256
"""Of random ids, where none are given."""

SPARE_BYTES = 64 << 20
"""What its program may write beside its logits."""

LEAST_MEMORY = 1 << 30
"""Bytes that it leaves of the machine's memory."""

_LOOK_SECONDS = 1.0

_MODULE = "evaluation.checkpoints.nanotron_program"


def nanotron_errors(
    checkpoint: Checkpoint, python: Path, *, ids: Path | None, seconds: float
) -> dict[str, float]:
    """As `verify.relative_errors`, with logits that Nanotron's code gives in `python`.

    `ids` is a safetensors file with `input_ids` (B, T), and maybe `position_ids` in which every 0
    begins a document; random ids where it is None.

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
    tensors = _random_ids(checkpoint) if ids is None else read_ids(checkpoint, ids)
    _check_positions(tensors, ids)
    if not is_python(python):
        raise ConfigError(
            f"--python {python}: no such program; name the Python of an environment that has Nanotron"
        )
    with _folder() as folder:
        _ask(checkpoint, tensors, folder)
        _run(python, _Watch(folder, seconds, _most_bytes(checkpoint, tensors)))
        return _compare(checkpoint, tensors["input_ids"], folder)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="nanotron-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _random_ids(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    """Always the same ones; two documents in the second half of the rows."""
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(checkpoint.vocab_size, (ROWS, LENGTH), generator=random)
    positions = torch.arange(LENGTH).repeat(ROWS, 1)
    positions[ROWS // 2 :, LENGTH // 3 :] -= LENGTH // 3
    return {"input_ids": ids, "position_ids": positions}


def _check_positions(tensors: dict[str, torch.Tensor], ids: Path | None) -> None:
    """Raises CheckpointError for a row that begins inside a document, which Nanotron's cannot."""
    positions = tensors.get("position_ids")
    if positions is not None and (positions[:, 0] != 0).any():
        raise CheckpointError(
            f"{ids}: `position_ids` of every row must begin with 0, where a document begins"
        )


def _ask(checkpoint: Checkpoint, tensors: dict[str, torch.Tensor], folder: Path) -> None:
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
    """Of float32 logits of each kind, and the ids beside them."""
    return tensors["input_ids"].numel() * (len((PACKED, CAUSAL)) * 4 * checkpoint.vocab_size + 16)


class _Watch:
    """Whether Nanotron's program may go on; once it may not, `reason` says why."""

    def __init__(self, folder: Path, seconds: float, most_bytes: int) -> None:
        self.folder = folder
        self.most_bytes = most_bytes + SPARE_BYTES
        self.reason = ""
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._next = 0.0

    def __call__(self) -> bool:
        now = time.monotonic()
        if now > self._end:
            self.reason = (
                f"did not end within {self._seconds:g} s; give it more by --limit, or see what its GPU "
                "is doing"
            )
        elif now > self._next:
            self._next = now + _LOOK_SECONDS
            self._look()
        return not self.reason

    def _look(self) -> None:
        written = sum(path.lstat().st_size for path in self.folder.iterdir())
        left = available_bytes()
        if written > self.most_bytes:
            self.reason = (
                f"wrote {written >> 20:,} MB into {self.folder.parent}, where its logits are no more "
                f"than {self.most_bytes >> 20:,} MB, and was stopped; its version does not fit this checkpoint"
            )
        elif 0 < left < LEAST_MEMORY:
            self.reason = (
                f"left this machine {left >> 20:,} MB of memory and was stopped; use a larger one, or "
                "fewer ids by --ids"
            )


def _run(python: Path, watch: _Watch) -> None:
    folder = watch.folder
    program = Program(python, _MODULE, (str(folder),), folder, {"TOKENIZERS_PARALLELISM": "false"})
    try:
        ended = program.run(watch)
    except NotStarted as error:
        raise ConfigError(f"--python {python}: cannot be run ({error}); name another") from None
    if watch.reason:
        raise ScoringError(f"--against nanotron: {python} {watch.reason}")
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
    if written.stat().st_size > watch.most_bytes:
        raise _rubbish(f"a file of {written.stat().st_size >> 20:,} MB")


def _sentence(refused: Path) -> str:
    try:
        return str(parse_json(refused).get("sentence"))[:300]
    except CheckpointError:
        return "it did not say why"


def _compare(checkpoint: Checkpoint, ids: torch.Tensor, folder: Path) -> dict[str, float]:
    written = folder / "logits.safetensors"
    try:
        with safe_open(written, framework="pt") as file:
            theirs = file.get_tensor("input_ids")
            kinds = [key for key in (PACKED, CAUSAL) if key in file.keys()]  # noqa: SIM118 - no dict
            words = {file.get_slice(key).get_shape()[-1] for key in kinds}
    except (OSError, SafetensorError) as error:
        raise _rubbish(str(error)) from None
    if not torch.equal(theirs, ids.long()):
        raise _rubbish("logits of other ids than those asked for")
    if words != {checkpoint.vocab_size}:
        raise _rubbish(f"logits of {sorted(words)} words, not {checkpoint.vocab_size}")
    try:
        return _errors(checkpoint, written)
    except NonFiniteError as error:
        raise NonFiniteError(str(error).replace(f"{written}: ", "--against nanotron: ")) from None
    except CheckpointError as error:
        if str(written) not in str(error):
            raise
        raise _rubbish(str(error).replace(f"{written}: ", "")) from None


def _errors(checkpoint: Checkpoint, written: Path) -> dict[str, float]:
    """Ours in float32, on the GPU where they fit."""
    if torch.cuda.is_available():
        try:
            return relative_errors(checkpoint, written, device="cuda")
        except torch.OutOfMemoryError:
            log.warning("%s does not fit the GPU in float32; it runs on the CPU", checkpoint.path)
        torch.cuda.empty_cache()
    return relative_errors(checkpoint, written)


def _rubbish(what: str) -> ScoringError:
    return ScoringError(
        f"--against nanotron: what Nanotron's code gave cannot be compared ({what[:200]}); its "
        "version does not fit this checkpoint"
    )
