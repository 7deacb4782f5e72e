"""The lines of a cache's files.

examples.jsonl   one Item a line
prompts.jsonl    one Prompt a line
docs.jsonl       one DocumentLine a line; of a task of ranked choices one QuestionLine
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Count = Annotated[int, Field(ge=0, lt=2**63)]
TokenId = Annotated[int, Field(ge=0, lt=2**31)]


class Stored(BaseModel):
    """Strict: a number is no text, nor the other way round. Keys of later versions are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class Context(Stored):
    """The text that precedes a candidate, as tokens."""

    text: str
    tokens: tuple[TokenId, ...]


class Candidate(Stored):
    """A continuation to score after `contexts[context]`.

    `chars` and `bytes` are the length of its text without one leading space, which counts too for
    olmo-eval, and where there is no other candidate.
    """

    context: Count
    text: str
    tokens: Annotated[tuple[TokenId, ...], Field(min_length=1)]
    chars: Count
    bytes: Count


class Item(Stored):
    """A question: candidates of which number `gold` is right; see `metrics.variance` for its groups."""

    id: str
    cluster: str | None
    stratum: str | None = None
    gold: Count
    contexts: tuple[Context, ...]
    candidates: Annotated[tuple[Candidate, ...], Field(min_length=1)]
    unconditional: tuple[Candidate, ...] | None


class QuestionLine(Stored):
    """The part of a question that grading reads, by the key that its scores are stored under.

    `sizes` are each candidate's tokens, characters and bytes.
    """

    id: str
    key: str
    cluster: str | None
    stratum: str | None
    gold: Count
    sizes: list[tuple[Count, Count, Count]]


class Prompt(Stored):
    """What a model is to complete."""

    id: str
    prompt: str
    max_new_tokens: Annotated[int, Field(gt=0)]
    tokens: tuple[TokenId, ...]


class DocumentLine(Stored):
    """A line of docs.jsonl: a prompt's document for verifiers, and the groups that it belongs to."""

    id: str
    document: dict[str, Any]
    strata: dict[str, str]


def reasons(error: ValidationError) -> str:
    """Return the first mistakes, each by its key, on one line."""
    found = [
        f"`{'.'.join(map(str, mistake['loc'])) or 'the whole'}`: {mistake['msg']}"
        for mistake in error.errors(include_url=False, include_input=False)
    ]
    return " ".join("; ".join(found[:3]).removeprefix("Value error, ").split())
