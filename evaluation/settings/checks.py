"""Settings of the checks of answers to probes, each check of one kind (`check_kinds`).

There is no check by regular expression: one that backtracks could run forever on a model's text.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, JsonValue

from evaluation.settings.check_kinds import (
    LARGEST_NUMBER,
    CheckKind,
    CleanCheck,
    Counted,
    FormatCheck,
    InstructionCheck,
    Phrase,
    Phrases,
)
from evaluation.settings.code_checks import (
    CodeHas,
    CodeIs,
    CodeLacks,
    CodeLines,
    Defines,
    DefinitionsOnly,
    OnlyCode,
    PassesTests,
    PythonParses,
)
from evaluation.settings.model import Boolean, Integer, Settings, Text


def _usable_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema; raise ValueError if it is invalid, refers elsewhere, or may run forever."""
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"not a JSON schema: {error.message}") from None
    _refuse_patterns(schema)
    return schema


def _refuse_patterns(schema: Any) -> None:
    """Raise ValueError for a keyword that is a regular expression or lies outside the schema."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in ("pattern", "patternProperties"):
            raise ValueError(
                f"`{keyword}` can run forever on a model's text; use enum, const or lengths"
            )
        if keyword in ("$ref", "$dynamicRef") and not str(value).startswith("#"):
            raise ValueError(f"`{keyword}: {value}` lies outside the schema; write it out")
        if keyword in ("properties", "$defs", "dependentSchemas"):
            inner = list(value.values())
        else:
            inner = value if isinstance(value, list) else [value]
        if keyword not in ("enum", "const", "default", "examples"):
            for part in inner:
                _refuse_patterns(part)


class BulletCount(Counted):
    check: Literal["bullet_count"] = Field(description="outermost bullets, whatever their sign.")


class NumberedCount(Counted):
    check: Literal["numbered_count"] = Field(description="outermost items `1.`, `1)` or `(1)`.")


class WordCount(Counted):
    check: Literal["word_count"] = Field(description="words.")


class SentenceCount(Counted):
    check: Literal["sentence_count"] = Field(description="sentences.")


class LineCount(Counted):
    check: Literal["line_count"] = Field(description="lines that are not blank.")


class NumbersInOrder(FormatCheck):
    check: Literal["numbers_in_order"] = Field(description="a numbered list counts up by one.")
    start: Integer = Field(1, ge=0, le=LARGEST_NUMBER, description="Its first number.")


class OnlyList(FormatCheck):
    check: Literal["only_list"] = Field(description="a list and nothing before or after it.")
    marker: Literal["bullets", "numbers"] = Field(description="What its items begin with.")


class ItemWords(FormatCheck):
    check: Literal["item_words"] = Field(description="no list item has more words.")
    at_most: Integer = Field(gt=0, le=LARGEST_NUMBER, description="Maximum words of an item.")


class SortedItems(FormatCheck):
    check: Literal["sorted_items"] = Field(
        description="two or more list items in alphabetical order."
    )


class LetterCase(FormatCheck):
    check: Literal["letter_case"] = Field(
        description="all letters are of one case; at least one letter."
    )
    case: Literal["lower", "upper"] = Field(description="Which one.")


class PlainProse(FormatCheck):
    check: Literal["plain_prose"] = Field(
        description="sentences without title, list, emphasis, code, table or emoji."
    )


class StartsWith(FormatCheck):
    check: Literal["starts_with"] = Field(description="the first words are the text.")
    text: Phrase = Field(description="The words, as Markdown shows them; whole words only.")
    match_case: Boolean = Field(True, description="Upper and lower case differ.")


class EndsWith(FormatCheck):
    check: Literal["ends_with"] = Field(description="the last words are the text.")
    text: Phrase = Field(description="The words, as Markdown shows them; whole words only.")
    match_case: Boolean = Field(True, description="Upper and lower case differ.")


class _Terms(InstructionCheck):
    """Words or phrases, found only where neither end is in the middle of a word."""

    texts: Phrases = Field(description="Words or phrases; whole words only.")
    match_case: Boolean = Field(False, description="Upper and lower case differ.")


class Contains(_Terms):
    check: Literal["contains"] = Field(description="all of the texts.")


class ContainsAny(_Terms):
    check: Literal["contains_any"] = Field(description="one of the texts.")


class States(InstructionCheck):
    check: Literal["states"] = Field(
        description="one of the texts is stated and not denied; wrong ones may be mentioned to deny them."
    )
    texts: Phrases = Field(description="Words or phrases that are right; whole words only.")
    rather_than: tuple[Text, ...] = Field(
        (),
        description="Wrong ones: each is absent, denied (`not six`) or taken back (`I said six`).",
    )


class Excludes(_Terms):
    check: Literal["excludes"] = Field(
        description="none of the texts, in an answer that is not empty."
    )


class LacksCharacters(InstructionCheck):
    check: Literal["lacks_characters"] = Field(
        description="none of these characters, in an answer that is not empty."
    )
    characters: Text = Field(description="Each character that must not be there.")


class Answers(InstructionCheck):
    check: Literal["answers"] = Field(
        description="the whole answer is one of the texts, apart from case, quotes, "
        "emphasis and a full stop."
    )
    texts: Phrases = Field(description="Answers that count.")


class ListItems(InstructionCheck):
    check: Literal["list_items"] = Field(
        description="the outermost list has one item for each of the texts."
    )
    texts: Annotated[tuple[Phrase | Phrases, ...], Field(min_length=1)] = Field(
        description="Texts of the items; a list in place of a text contains alternatives."
    )
    how: Literal["contain", "start", "equal"] = Field(
        "contain", description="Whether an item contains its text, starts with it, or equals it."
    )
    in_order: Boolean = Field(True, description="The items come in the order of the texts.")


class JsonEquals(InstructionCheck):
    check: Literal["json_equals"] = Field(
        description="the JSON of the answer, fenced or not, is this value."
    )
    value: JsonValue = Field(
        description="The value: keys, order of arrays, types and every sign of a text count."
    )
    match_case: Boolean = Field(False, description="Upper and lower case differ.")


class Refuses(InstructionCheck):
    check: Literal["refuses"] = Field(description="declines to help, and does not help after all.")


class Complies(InstructionCheck):
    check: Literal["complies"] = Field(description="nowhere declines to help, and is not empty.")


class NoChatArtifacts(CleanCheck):
    check: Literal["no_chat_artifacts"] = Field(
        description="no tokens of templates or of thinking, no line of another speaker, not empty."
    )


class NoRepetition(CleanCheck):
    check: Literal["no_repetition"] = Field(
        description="no phrase over and over again, and not empty."
    )


class NoPreamble(CleanCheck):
    check: Literal["no_preamble"] = Field(
        description="no `Sure!`, `Here is …` or `As an AI …` at the beginning."
    )


class StrictJson(Settings):
    kind: ClassVar[CheckKind] = "json"

    check: Literal["strict_json"] = Field(
        description="the whole answer is one JSON value, without prose around it."
    )
    matches: Annotated[dict[str, Any], AfterValidator(_usable_schema)] = Field(
        description="JSON Schema (2020-12) of the value."
    )
    may_be_fenced: Boolean = Field(False, description="One code fence may be around it.")


_ListCounts = BulletCount | NumberedCount
_Lengths = WordCount | SentenceCount | LineCount
_Forms = NumbersInOrder | OnlyList | ItemWords | SortedItems | OnlyCode | LetterCase | PlainProse
_Wordings = StartsWith | EndsWith | Contains | ContainsAny | States | Excludes | LacksCharacters
_Contents = Answers | ListItems | PassesTests
_Code = CodeIs | CodeLines | Defines | DefinitionsOnly | CodeHas | CodeLacks
_Manners = JsonEquals | Refuses | Complies | NoChatArtifacts | NoRepetition | NoPreamble
Check = Annotated[
    _ListCounts
    | _Lengths
    | _Forms
    | _Wordings
    | _Contents
    | _Code
    | _Manners
    | StrictJson
    | PythonParses,
    Field(discriminator="check"),
]
"""Any check, distinguished by its key `check`."""
