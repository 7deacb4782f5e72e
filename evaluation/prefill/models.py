"""What the files of a cache hold, key by key, so that one that was edited by hand names itself.

meta.json        Tokenizer-, Slice-, Task-, Probes- or GenerationMeta, with a checksum of its own
examples.jsonl   one Example a line
prompts.jsonl    one PromptLine a line; of a generation task one TaskPromptLine
docs.jsonl       one DocumentLine a line; of a task of ranked choices one QuestionLine
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Count = Annotated[int, Field(ge=0, lt=2**63)]
TokenId = Annotated[int, Field(ge=0, lt=2**31)]


class Stored(BaseModel):
    """Strict: a number is no text, nor the other way round. Keys of later versions are let be."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class TokenizerFacts(Stored):
    """What every meta.json says about the tokenizer."""

    name: str
    fingerprint: str
    class_: str = Field(alias="class")
    prepend_bos: bool
    vocab_size: Count
    bos_token_id: TokenId | None
    eos_token_id: TokenId | None


class Items(Stored):
    """How many items were asked for and used, and why others were left out."""

    asked: Count
    used: Count
    left_out: dict[str, Count]


class Meta(Stored):
    """What every meta.json holds."""

    definition: str
    checksum: dict[str, str]


class TokenizerMeta(Meta, TokenizerFacts):
    revision: str | None


class _ItemsMeta(Meta):
    protocol: str
    items: Items
    vocab_size_needed: Count
    tokenizer: TokenizerFacts


class SliceMeta(_ItemsMeta):
    blocks: Annotated[int, Field(gt=0)]
    sequence_length: Annotated[int, Field(gt=1)]
    dtype: Literal["uint8", "uint16", "int32"]
    documents: Count
    tokens: Count
    bytes: Count
    slice: dict[str, Any]
    source: dict[str, Any]


class TaskMeta(_ItemsMeta):
    task: dict[str, Any]
    asked_definition: str
    asked_content: str
    candidates: Count
    chance: Annotated[float, Field(ge=0, le=1)]
    max_tokens: Count
    source: dict[str, Any]


class ProbesMeta(_ItemsMeta):
    max_tokens: Count
    chat_template: str
    stop: list[str]
    eos_token_ids: list[TokenId]
    sequence_length: Annotated[int, Field(gt=1)]


class GenerationMeta(_ItemsMeta):
    task: dict[str, Any]
    asked_definition: str
    too_long: list[str]
    max_tokens: Count
    chat_template: str | None
    end_strings: list[str]
    eos_token_ids: list[TokenId]
    sequence_length: Annotated[int, Field(gt=1)]
    source: dict[str, Any]
    provider: dict[str, Any] | None = None


class ContextLine(Stored):
    text: str
    tokens: list[TokenId]


class CandidateLine(Stored):
    context: Count
    text: str
    tokens: Annotated[list[TokenId], Field(min_length=1)]
    chars: Count
    bytes: Count


class Example(Stored):
    """A line of examples.jsonl."""

    id: str
    cluster: str | None
    stratum: str | None = None
    gold: Count
    contexts: list[ContextLine]
    candidates: Annotated[list[CandidateLine], Field(min_length=2)]
    unconditional: list[CandidateLine] | None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.gold >= len(self.candidates):
            raise ValueError(
                f"gold is {self.gold}, but there are {len(self.candidates)} candidates"
            )
        every = (*self.candidates, *(self.unconditional or ()))
        if any(candidate.context >= len(self.contexts) for candidate in every):
            raise ValueError(f"a candidate's context is not among the {len(self.contexts)}")
        return self


class QuestionLine(Stored):
    """What grading reads of a question, by the key that its scores are stored under.

    `sizes` are each candidate's tokens, characters and bytes.
    """

    id: str
    key: str
    cluster: str | None
    stratum: str | None
    gold: Count
    sizes: list[tuple[Count, Count, Count]]


class PromptLine(Stored):
    """A line of prompts.jsonl."""

    model_config = ConfigDict(strict=False)  # lists are taken for tuples

    id: str
    messages: tuple[dict[str, str], ...]
    max_new_tokens: Annotated[int, Field(gt=0, strict=True)]
    prompt: str
    tokens: tuple[Annotated[int, Field(ge=0, lt=2**31, strict=True)], ...]


class TaskPromptLine(Stored):
    """A line of a generation task's prompts.jsonl."""

    model_config = ConfigDict(strict=False)  # lists are taken for tuples

    id: str
    prompt: str
    max_new_tokens: Annotated[int, Field(gt=0, strict=True)]
    tokens: tuple[Annotated[int, Field(ge=0, lt=2**31, strict=True)], ...]


class DocumentLine(Stored):
    """A line of docs.jsonl: what verifiers read of a prompt, and the groups that it belongs to."""

    id: str
    document: dict[str, Any]
    strata: dict[str, str]


def reasons(error: ValidationError) -> str:
    """The first mistakes, each by its key, on one line."""
    found = [
        f"`{'.'.join(map(str, mistake['loc'])) or 'the whole'}`: {mistake['msg']}"
        for mistake in error.errors(include_url=False, include_input=False)
    ]
    return " ".join("; ".join(found[:3]).removeprefix("Value error, ").split())
