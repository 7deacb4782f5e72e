"""A provider's task, rendered by its program: its documents, and settings for completing them."""

from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from evaluation.errors import SourceError
from evaluation.providers.program import Provider
from evaluation.settings.suites import Message

SECONDS = 3600.0
"""Longest time for rendering a task, which may have to be downloaded first."""


class Document(BaseModel):
    """A document whose answers are generated."""

    id: str
    part: str
    """The task that it belongs to, where a group of tasks was requested."""
    prompt: str | None
    messages: list[Message] | None
    document: dict[str, Any]
    """What the provider needs to verify a completion."""
    gold: str | None


class RankedQuestion(BaseModel):
    """A document whose choices are ranked."""

    id: str
    part: str
    choices: list[tuple[str, str]] = Field(min_length=1)
    """Contexts, each with the continuation that is ranked."""
    unconditional: list[tuple[str, str]] | None
    right: int = Field(ge=0)
    fields: dict[str, Any] = {}
    """Texts and whole numbers of its row, by which a suite may group questions."""

    @model_validator(mode="after")
    def _has_right(self) -> Self:
        if self.right >= len(self.choices):
            raise ValueError(f"{self.id}: its label is {self.right} of {len(self.choices)} choices")
        return self


Line = TypeVar("Line", Document, RankedQuestion)


class TaskInfo(BaseModel):
    """What the reply says of the task."""

    version: str
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
    *,
    seconds: float = SECONDS,
) -> Rendered[Line]:
    """Render a task whose answers are generated, or one that ranks choices or scores the right one.

    Args:
        key: Key of the suite that names the task, for errors.
        request: The request without the kind.
        line: `Document` for prompts, `RankedQuestion` for choices.
        seconds: Longest time that the program may take.

    Raises:
        SourceError: The provider refuses the task, or its program fails.
    """
    kind = "choices" if line is RankedQuestion else "generative"
    replies, ended = provider.ask({**request, "kind": kind}, seconds)
    reply = replies[0] if replies else {}
    if "refused" in reply:
        raise SourceError(f"{key}: {reply['refused']}")
    if ended.code != 0:
        raise SourceError(
            f"{key}: {provider.name}, which has {seconds:g} seconds, {ended}; if its data cannot be had, "
            "name a local copy under `mirrors`"
        )
    model: Any = Rendered
    try:
        rendered: Rendered[Line] = model[line].model_validate(reply)
    except ValidationError as error:
        raise SourceError(
            f"{key}: {provider.name} wrote no valid rendered task ({error.errors()[0]['msg']}); install it "
            f"again by `{provider.install}`"
        ) from None
    if rendered.info.version != provider.version:
        raise SourceError(f"{key}: {provider.other_version(rendered.info.version)}")
    return rendered
