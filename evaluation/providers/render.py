"""A provider's task, rendered by its program: its documents, and settings for completing them."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evaluation.errors import SourceError
from evaluation.interpreters import refusal
from evaluation.providers.program import Provider, run

SECONDS = 3600.0
"""Longest time for rendering a task, which may have to be downloaded first."""


class Turn(BaseModel):
    role: Literal["system", "user", "assistant"]
    content: str


class Document(BaseModel):
    """A line of documents.jsonl."""

    id: str
    part: str
    prompt: str | None
    messages: list[Turn] | None
    document: dict[str, Any]
    gold: str | None


class RankedQuestion(BaseModel):
    """A line of documents.jsonl for a task that ranks choices."""

    id: str
    part: str
    choices: list[tuple[str, str]] = Field(min_length=1)
    unconditional: list[tuple[str, str]] | None
    right: int = Field(ge=0)
    fields: dict[str, Any] = {}

    @model_validator(mode="after")
    def _has_right(self) -> Self:
        if self.right >= len(self.choices):
            raise ValueError(f"{self.id}: its label is {self.right} of {len(self.choices)} choices")
        return self


Line = TypeVar("Line", Document, RankedQuestion)


class ReadSource(BaseModel):
    """A dataset, or a user's task files, with each file's status before it was read.

    `files` is None for the hub.
    """

    kind: Literal["data", "tasks"] = "data"
    dataset: str
    config: str | None
    files: list[tuple[str, tuple[int, int, int, int]]] | None


class TaskInfo(BaseModel):
    """The task's meta.json."""

    model_config = ConfigDict(extra="ignore")

    version: str
    kind: Literal["generative", "choices"]
    stop: list[str]
    max_new_tokens: int | None = Field(gt=0)
    num_fewshot: dict[str, int]
    metrics: dict[str, bool]
    datasets: dict[str, str]
    read: list[ReadSource]
    documents: int = Field(gt=0)
    task_files: str | None = None
    """Checksum of a user's task files."""


@dataclass(frozen=True)
class Rendered(Generic[Line]):
    info: TaskInfo
    documents: list[Line]


def render(
    provider: Provider,
    key: str,
    request: dict[str, Any],
    line: type[Line],
    *,
    seconds: float = SECONDS,
) -> Rendered[Line]:
    """Render a task whose answers are generated, or one that ranks choices or scores the right one.

    Args:
        key: Key of the suite that names the task, for errors.
        request: Content of request.json without the kind.
        line: `Document` for prompts, `RankedQuestion` for choices.
        seconds: Longest time that the program may take.

    Raises:
        SourceError: The provider refuses the task, or its program fails.
    """
    asked = {**request, "kind": "choices" if line is RankedQuestion else "generative"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if refused := _refusal(provider, f"{key}: ", "render", folder, asked, seconds):
            raise SourceError(f"{key}: {refused}")
        return _read(provider, key, folder, line)


def check(provider: Provider, request: dict[str, Any]) -> str | None:
    """Return a sentence on the tasks that cannot be rendered and on missing data; None without any.

    Args:
        request: `tasks` and `mirrors`, as the contract describes them.

    Raises:
        SourceError: The provider's program fails.
    """
    with tempfile.TemporaryDirectory() as name:
        return _refusal(provider, "", "check", Path(name), request, SECONDS)


def _refusal(
    provider: Provider, key: str, verb: str, folder: Path, request: dict[str, Any], seconds: float
) -> str | None:
    """Run a verb; return the sentence with which the program refuses the request, if it does."""
    end = time.monotonic() + seconds
    ended = run(provider, verb, folder, request, lambda: time.monotonic() < end)
    if (refused := refusal(folder)) is not None:
        return refused
    if ended.code is None:
        raise SourceError(
            f"{key}{provider.title} was not done after {seconds:g} seconds; see whether its "
            "dataset can be reached, or name a local copy under `mirrors`"
        )
    if ended.code != 0:
        raise SourceError(f"{key}{provider.title} failed; its program {ended}")
    return None


def _read(provider: Provider, key: str, folder: Path, model: type[Line]) -> Rendered[Line]:
    try:
        info = TaskInfo.model_validate_json((folder / "meta.json").read_bytes())
        lines = (folder / "documents.jsonl").read_text(encoding="utf-8").splitlines()
        documents = [model.model_validate_json(line) for line in lines]
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise SourceError(
            f"{key}: {provider.title} wrote no valid rendered task ({what}); run its program by "
            f"hand, or install it again by `{provider.install}`"
        ) from None
    if (sentence := provider.other_version(info.version)) is not None:
        raise SourceError(f"{key}: {sentence}")
    if not documents:
        raise SourceError(f"{key}: {provider.title} gave no documents")
    return Rendered(info, documents)
