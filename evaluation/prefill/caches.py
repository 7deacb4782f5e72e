"""Read cache entries: slices, tasks and prompts; compare every file's checksum with meta.json.

    examples.jsonl   one TokenizedQuestion per line
    prompts.jsonl    one Prompt per line
    docs.jsonl       one DocumentLine per line; one QuestionLine for tasks of ranked choices

Readers raise CacheError, which names what is missing, foreign or damaged, and what to do.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict

from evaluation.files import fingerprint
from evaluation.prefill.entries import check_files, read_meta
from evaluation.settings.generation import GenerationTask
from evaluation.settings.plan import StagePlan

if TYPE_CHECKING:
    import torch

TOKENS = "packed_tokens.pt"
INDEX = "index.pt"
EXAMPLES = "examples.jsonl"
PROMPTS = "prompts.jsonl"
DOCUMENTS = "docs.jsonl"


class Stored(BaseModel):
    """Base of stored lines. Types are strict; unknown keys, as of later versions, are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class Context(Stored):
    """The text that precedes a candidate, as tokens."""

    text: str
    tokens: tuple[int, ...]


class AnswerCandidate(Stored):
    """A continuation to score after `contexts[context]`.

    `chars` and `bytes` are the length of its text without one leading space. That space counts, too,
    where there is no other candidate.
    """

    context: int
    text: str
    tokens: tuple[int, ...]
    chars: int
    bytes: int


class TokenizedQuestion(Stored):
    """A question: candidate number `gold` is right; see `metrics.variance` for its groups."""

    id: str
    cluster: str | None
    stratum: str | None = None
    gold: int
    contexts: tuple[Context, ...]
    candidates: tuple[AnswerCandidate, ...]
    unconditional: tuple[AnswerCandidate, ...] | None


class GradedLine(Stored):
    """What grading reads of an item: by `question` and `row` it is recognised in other tasks (`items`)."""

    id: str
    cluster: str | None = None
    question: str | None = None
    row: str | None = None


class QuestionLine(GradedLine):
    """A question: its scores' `key`, and each candidate's tokens, chars and bytes."""

    key: str
    stratum: str | None
    gold: int
    sizes: list[tuple[int, int, int]]


class Prompt(Stored):
    """A prompt that a model completes."""

    id: str
    prompt: str
    max_new_tokens: int
    tokens: tuple[int, ...]


class DocumentLine(GradedLine):
    """A prompt: its document for verifiers, and its fixed groups."""

    document: dict[str, Any]
    strata: dict[str, str]


Line = TypeVar("Line", bound=Stored)


@dataclass(frozen=True)
class SliceCache:
    """A slice: `tokens` (blocks, sequence length), UTF-8 bytes of each block's tokens 1.. (`block_bytes`).

    `document_starts` holds ascending flat positions, `start_bytes` the bytes of the tokens there.
    """

    tokens: "torch.Tensor"
    block_bytes: "torch.Tensor"
    document_starts: "torch.Tensor"
    meta: dict[str, Any]
    start_bytes: "torch.Tensor | None" = None


@dataclass(frozen=True)
class TaskCache:
    """A task's questions; its files are read when they are needed, as that takes seconds."""

    folder: Path
    meta: dict[str, Any]

    @functools.cached_property
    def items(self) -> list[TokenizedQuestion]:
        """The questions in the order of the dataset."""
        return list(_lines(self.folder / EXAMPLES, TokenizedQuestion))

    @functools.cached_property
    def keys(self) -> list[str]:
        """The key of each question (`QuestionLine`)."""
        return [line.key for line in _lines(self.folder / DOCUMENTS, QuestionLine)]


@dataclass(frozen=True)
class PromptCache:
    """Prompts: of a stage's probes in the suite's order, or of a task in the dataset's order."""

    prompts: list[Prompt]
    meta: dict[str, Any]


def read_slice(folder: Path) -> SliceCache:
    """Read a Tier2 slice; the tokens stay mapped to the file."""
    import torch

    meta = read_meta(folder)
    check_files(folder, meta, (TOKENS, INDEX))
    tokens = torch.load(folder / TOKENS, weights_only=True, mmap=True)
    index = torch.load(folder / INDEX, weights_only=True)
    return SliceCache(tokens, meta=meta, **index)


def read_task(folder: Path) -> TaskCache:
    """Read a Tier3 task's meta.json, and compare its files with the checksums there."""
    meta = read_meta(folder)
    check_files(folder, meta, (EXAMPLES, DOCUMENTS))
    return TaskCache(folder, meta)


def read_questions(folder: Path) -> tuple[list[QuestionLine], dict[str, Any]]:
    """Read a Tier3 task's lines of docs.jsonl in order, without its tokens, and meta.json."""
    return _read(folder, DOCUMENTS, QuestionLine)


def read_prompts(folder: Path) -> PromptCache:
    """Read the prompts of a stage's probes (Tier4) or of a generation task (Tier5) in order."""
    return PromptCache(*_read(folder, PROMPTS, Prompt))


def read_documents(folder: Path) -> dict[str, DocumentLine]:
    """Read a Tier5 task's documents for verifiers, by the prompt's id."""
    return {line.id: line for line in _read(folder, DOCUMENTS, DocumentLine)[0]}


def check_cached_golds(plan: StagePlan, name: str) -> None:
    """Check a Tier5 task's gold answers again if its verifiers have changed since prefill.

    A provider's task is not checked.
    """
    task, folder = plan.suite.generation_tasks[name], plan.cache_folder("tier5", name)
    if not isinstance(task, GenerationTask):
        return
    if read_meta(folder).get("checked") != fingerprint(task.verifying):
        from evaluation.verification.golds import check_golds

        documents = {id: line.document for id, line in read_documents(folder).items()}
        limits = plan.config.verification
        check_golds(name, task, documents, limits=limits, nltk_data=plan.nltk_data)


def _read(folder: Path, name: str, line: type[Line]) -> tuple[list[Line], dict[str, Any]]:
    """Return the lines of a JSONL file of an entry, and its meta.json."""
    meta = read_meta(folder)
    check_files(folder, meta, (name,))
    return list(_lines(folder / name, line)), meta


def _lines(path: Path, model: type[Line]) -> Iterator[Line]:
    with open(path, "rb") as lines:
        yield from map(model.model_validate_json, lines)
