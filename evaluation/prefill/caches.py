"""Reads what prefill wrote, checking every file against the checksum in its meta.json.

A reader raises CacheError that names what is missing, foreign or damaged, and what to do.
"""

import hashlib
import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from evaluation.command_hints import snakemake
from evaluation.errors import CacheError
from evaluation.files import file_checksum, open_regular
from evaluation.prefill.models import (
    CandidateLine,
    Example,
    Meta,
    QuestionLine,
    SliceMeta,
    Stored,
    TaskMeta,
    reasons,
)

if TYPE_CHECKING:
    import torch

Line = TypeVar("Line", bound=Stored)

META = "meta.json"
TOKENS = "packed_tokens.pt"
INDEX = "index.pt"
EXAMPLES = "examples.jsonl"
PROMPTS = "prompts.jsonl"
DOCUMENTS = "docs.jsonl"

META_CHECKSUM = "meta_checksum"
"""Key of a meta.json under which its own checksum stands."""


@dataclass(frozen=True, slots=True)
class Context:
    """What precedes a candidate."""

    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A continuation to score after `contexts[context]`; its tokens are never empty.

    `chars` and `bytes` are the length of its text without one leading space.
    """

    context: int
    text: str
    tokens: tuple[int, ...]
    chars: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Item:
    """A question: candidates of which number `gold` is right; see `grading.spread` for its groups."""

    id: str
    cluster: str | None
    gold: int
    contexts: tuple[Context, ...]
    candidates: tuple[Candidate, ...]
    unconditional: tuple[Candidate, ...] | None
    stratum: str | None = None


@dataclass(frozen=True)
class SliceCache:
    """A slice: `tokens` (blocks, sequence length), `block_bytes` (blocks,), and where documents start.

    `block_bytes` counts the UTF-8 bytes of the text of tokens 1.. of each block, those that are
    scored. `document_starts` holds flat positions, ascending; `start_bytes` are those of the tokens
    there, None in caches that do not know them.
    """

    tokens: "torch.Tensor"
    block_bytes: "torch.Tensor"
    document_starts: "torch.Tensor"
    meta: dict[str, Any]
    start_bytes: "torch.Tensor | None" = None


@dataclass(frozen=True)
class TaskCache:
    """A task's questions in the order of the dataset, and the key of each (`QuestionLine`)."""

    items: list[Item]
    meta: dict[str, Any]
    keys: list[str]


@dataclass(frozen=True)
class Questions:
    """What is graded of a task's questions, in the order of the dataset."""

    lines: list[QuestionLine]
    meta: dict[str, Any]


def read_meta(folder: Path) -> dict[str, Any]:
    """Reads `folder/meta.json` and checks it against its own checksum; raises CacheError."""
    path = folder / META
    try:
        with open_regular(path) as file:
            meta = json.loads(file.read().decode("utf-8"))
    except FileNotFoundError:
        raise CacheError(
            f"{folder} is not prefilled (no {META}); run `{snakemake('prefill')}`"
        ) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from None
    if not isinstance(meta, dict) or not isinstance(meta.get("checksum"), dict):
        raise _damaged(path, "it holds no checksums")
    content = {key: value for key, value in meta.items() if key != META_CHECKSUM}
    if META_CHECKSUM not in meta:
        raise _damaged(path, "it has no checksum of its own, as those of older versions")
    if meta[META_CHECKSUM] != meta_checksum(content):
        raise _damaged(path, "it was changed after it was written")
    return _checked(path, meta, Meta)


def meta_checksum(content: Mapping[str, Any]) -> str:
    """Checksum of a meta.json's content but for this very key, however it is laid out."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def checked_meta(folder: Path, model: type[Meta]) -> dict[str, Any]:
    """The meta.json of an entry of this kind; raises CacheError naming a key that is wrong."""
    return _checked(folder / META, read_meta(folder), model)


def _checked(path: Path, meta: dict[str, Any], model: type[Meta]) -> dict[str, Any]:
    try:
        model.model_validate(meta)
    except ValidationError as error:
        raise _damaged(path, reasons(error)) from None
    return meta


def check_files(folder: Path, meta: dict[str, Any], names: tuple[str, ...]) -> None:
    """Raises CacheError unless each file is there with the checksum that `meta` gives."""
    for name in names:
        path = folder / name
        expected = meta["checksum"].get(name)
        if name != Path(name).name or "\0" in name:
            raise _damaged(
                folder / META, f"`checksum` names {name!r}, which is no file of the entry"
            )
        try:
            found = file_checksum(path)
        except FileNotFoundError:
            raise _damaged(path, "the file is gone") from None
        except OSError as error:
            raise _unreadable(path, error) from None
        if found != expected:
            raise _damaged(path, "its checksum is not the one in meta.json")


def read_slice(folder: Path) -> SliceCache:
    """Reads a Tier2 slice; the tokens stay mapped to the file. Raises CacheError."""
    import torch

    meta = checked_meta(folder, SliceMeta)
    check_files(folder, meta, (TOKENS, INDEX))
    tokens = torch.load(folder / TOKENS, weights_only=True, mmap=True)
    index = torch.load(folder / INDEX, weights_only=True)
    expected = (meta["blocks"], meta["sequence_length"])
    if tuple(tokens.shape) != expected or index["block_bytes"].shape != tokens.shape[:1]:
        raise _damaged(folder / TOKENS, f"its shape {tuple(tokens.shape)} is not {expected}")
    return SliceCache(
        tokens, index["block_bytes"], index["document_starts"], meta, index.get("start_bytes")
    )


def map_blocks(folder: Path, meta: dict[str, Any]) -> npt.NDArray[np.integer[Any]]:
    """Token ids of a slice, (blocks, sequence length), mapped to its file without torch.

    The file is not checked against its checksum, since it is only read in part. Raises CacheError.
    """
    path = folder / TOKENS
    dtype, shape = np.dtype(meta["dtype"]), (meta["blocks"], meta["sequence_length"])
    try:
        offset = data_offset(path, dtype.itemsize * shape[0] * shape[1])
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile) as error:
        raise _damaged(path, str(error)) from None
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)


def data_offset(path: Path, size: int) -> int:
    """Where the bytes of a torch file's one tensor begin: behind its record's local header."""
    with open_regular(path) as file, zipfile.ZipFile(file) as archive:
        record = next(entry for entry in archive.infolist() if entry.filename.endswith("/data/0"))
    if record.file_size != size or record.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{path}: it holds {record.file_size} bytes, not {size}")
    with open_regular(path) as file:
        file.seek(record.header_offset + 26)
        name, extra = struct.unpack("<HH", file.read(4))
    return record.header_offset + 30 + int(name) + int(extra)


def read_task(folder: Path) -> TaskCache:
    """Reads a Tier3 task; raises CacheError."""
    meta = checked_meta(folder, TaskMeta)
    check_files(folder, meta, (EXAMPLES,))
    items = [_item(row) for row in read_lines(folder / EXAMPLES, Example)]
    keys = [line.key for line in read_questions(folder).lines]
    for name, lines in ((EXAMPLES, items), (DOCUMENTS, keys)):
        if len(lines) != meta["items"]["used"]:
            raise _damaged(folder / name, f"it has {len(lines)} items, not those of meta.json")
    return TaskCache(items, meta, keys)


def read_questions(folder: Path) -> Questions:
    """What grading reads of a Tier3 task, without its tokens; raises CacheError."""
    meta = checked_meta(folder, TaskMeta)
    check_files(folder, meta, (DOCUMENTS,))
    return Questions(list(read_lines(folder / DOCUMENTS, QuestionLine)), meta)


def read_lines(path: Path, model: type[Line]) -> Iterator[Line]:
    """The lines of a JSONL file; raises CacheError naming file, line and key."""
    with open_regular(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield model.model_validate_json(line)
            except ValidationError as error:
                raise _damaged(path, f"line {number}: {reasons(error)}") from None


def _item(row: Example) -> Item:
    return Item(
        id=row.id,
        cluster=row.cluster,
        gold=row.gold,
        contexts=tuple(Context(part.text, tuple(part.tokens)) for part in row.contexts),
        candidates=tuple(map(_candidate, row.candidates)),
        unconditional=None
        if row.unconditional is None
        else tuple(map(_candidate, row.unconditional)),
        stratum=row.stratum,
    )


def _candidate(row: CandidateLine) -> Candidate:
    return Candidate(row.context, row.text, tuple(row.tokens), row.chars, row.bytes)


def _unreadable(path: Path, error: OSError) -> CacheError:
    return CacheError(f"{path} cannot be read ({error.strerror}); make it readable")


def _damaged(path: Path, what: str) -> CacheError:
    return CacheError(
        f"{path} is damaged: {what}; delete {path.parent} and run `{snakemake('prefill')}`"
    )
