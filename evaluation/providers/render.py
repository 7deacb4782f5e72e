"""What a provider says of a task: its documents, and how it wants them completed."""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evaluation.errors import SourceError
from evaluation.providers.program import INSTALL, Provider, run

SECONDS = 3600.0
"""For a task to be rendered: it may have to be downloaded first."""


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


class Choice(BaseModel):
    """A line of documents.jsonl of a task that ranks choices."""

    id: str
    part: str
    choices: list[tuple[str, str]] = Field(min_length=2)
    unconditional: list[tuple[str, str]] | None
    right: int = Field(ge=0)

    @model_validator(mode="after")
    def _has_right(self) -> Self:
        if self.right >= len(self.choices):
            raise ValueError(f"{self.id}: its label is {self.right} of {len(self.choices)} choices")
        return self


Line = TypeVar("Line", Document, Choice)


class Read(BaseModel):
    """A dataset, or a user's task files, and what the file system told before; none of the hub's."""

    kind: Literal["data", "tasks"] = "data"
    dataset: str
    config: str | None
    files: list[tuple[str, tuple[int, int, int, int]]] | None


class Said(BaseModel):
    """What meta.json says of the task."""

    model_config = ConfigDict(extra="ignore")

    version: str
    kind: Literal["generative", "choices"]
    stop: list[str]
    max_new_tokens: int | None = Field(gt=0)
    num_fewshot: dict[str, int]
    metrics: dict[str, bool]
    datasets: dict[str, str]
    read: list[Read]
    documents: int = Field(gt=0)
    task_files: str | None = None
    """Checksum of a user's task files."""


@dataclass(frozen=True)
class Rendered(Generic[Line]):
    said: Said
    documents: list[Line]


def render(
    provider: Provider, key: str, request: dict[str, Any], *, seconds: float = SECONDS
) -> Rendered[Document]:
    """Has a generative task rendered; `key` names it in errors.

    Raises SourceError for whatever goes wrong.
    """
    return _rendered(provider, key, {**request, "kind": "generative"}, Document, seconds)


def render_choices(
    provider: Provider, key: str, request: dict[str, Any], *, seconds: float = SECONDS
) -> Rendered[Choice]:
    """The same of a task that ranks choices."""
    return _rendered(provider, key, {**request, "kind": "choices"}, Choice, seconds)


def _rendered(
    provider: Provider, key: str, request: dict[str, Any], line: type[Line], seconds: float
) -> Rendered[Line]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        end = time.monotonic() + seconds
        ended = run(provider, "render", folder, request, lambda: time.monotonic() < end)
        refused = folder / "refused.json"
        if refused.exists():
            raise SourceError(f"{key}: {_sentence(refused)}")
        if ended.code is None:
            raise SourceError(
                f"{key}: {provider.title} was not done after {seconds:g} seconds; see whether its "
                "dataset can be reached, or name a local copy under `mirrors`"
            )
        if ended.code != 0:
            raise SourceError(f"{key}: {provider.title} failed; its program {ended}")
        return _read(provider, key, folder, line)


def _sentence(path: Path) -> str:
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["sentence"])
    except (OSError, ValueError, KeyError, TypeError):
        return "the provider refused the task"


def _read(provider: Provider, key: str, folder: Path, model: type[Line]) -> Rendered[Line]:
    try:
        said = Said.model_validate_json((folder / "meta.json").read_bytes())
        lines = (folder / "documents.jsonl").read_text(encoding="utf-8").splitlines()
        documents = [model.model_validate_json(line) for line in lines]
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise SourceError(
            f"{key}: {provider.title} wrote what is no rendered task ({what}); run its program by "
            f"hand, or install it again by `{INSTALL}`"
        ) from None
    if said.version != provider.version:
        raise SourceError(
            f"{key}: {provider.python} has {provider.title} {said.version}, but {provider.version} "
            f"is asked for; run `{INSTALL}`"
        )
    if not documents:
        raise SourceError(f"{key}: {provider.title} gave no documents")
    return Rendered(said, documents)
