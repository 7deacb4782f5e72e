"""A provider's task, rendered by its program: its documents, and settings for completing them."""

from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from evaluation.errors import SourceError
from evaluation.providers.program import INSTALL, Provider
from evaluation.settings.suites import Message


class Document(BaseModel):
    """A document whose answers are generated; `document` is what the provider needs to verify one.

    `part` is the task that it belongs to, where a group of tasks was requested.
    """

    id: str
    part: str
    prompt: str | None
    messages: list[Message] | None
    document: dict[str, Any]
    gold: str | None


class RankedQuestion(BaseModel):
    """A document whose choices, contexts each with a continuation, are ranked.

    `fields` are texts and whole numbers of its row, by which a suite may group questions.
    """

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


class TaskInfo(BaseModel):
    """What the reply says of the task."""

    kind: Literal["generative", "choices"]
    stop: list[str]
    max_new_tokens: int | None = Field(gt=0)
    num_fewshot: dict[str, int]
    metrics: dict[str, bool]
    """For each metric whether more is better."""
    datasets: dict[str, str]
    """Where each dataset came from."""
    read: list[tuple[str, str | None, str]]
    """Each dataset, configuration and split that was read."""
    documents: int = Field(gt=0)
    """How many there are in all."""


class Rendered(BaseModel, Generic[Line]):
    """A reply: what it says of the task, and the task's documents."""

    info: TaskInfo
    documents: list[Line] = Field(min_length=1)


def render(
    provider: Provider,
    key: str,
    request: dict[str, Any],
    line: type[Line],
    seconds: float = 3600.0,
) -> Rendered[Line]:
    """Render a task whose answers are generated, or one that ranks choices or scores the right one.

    Args:
        key: Key of the suite that names the task, for errors.
        line: `Document` for prompts, `RankedQuestion` for choices.
        seconds: Longest time that the program may take; it may have to download the task's data.
    """
    kind = "choices" if line is RankedQuestion else "generative"
    (reply, *_), _ = provider.ask(key, {**request, "kind": kind}, seconds)
    model: Any = Rendered
    try:
        rendered: Rendered[Line] = model[line].model_validate(reply)
    except ValidationError as error:
        what = error.errors()[0]["msg"]
        raise SourceError(
            f"{key}: {provider.name} wrote no valid rendered task ({what}); {INSTALL}"
        ) from None
    return rendered
