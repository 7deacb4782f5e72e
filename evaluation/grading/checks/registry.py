"""Every check by its name: its settings, its function, and an answer that passes and one that fails.

A new check is a model in `settings/checks.py` and one entry here, which the tests try on its answers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from evaluation.errors import ConfigError
from evaluation.grading.checks import (
    cleanliness,
    code,
    layout,
    refusals,
    structured,
    tested,
    wording,
)
from evaluation.settings import checks, code_checks
from evaluation.settings.model import Settings


@dataclass(frozen=True, kw_only=True)
class CheckEntry:
    """What there is to know of a check.

    `function` is called with the answer and, by their names, the settings of `model`; of a
    `Counted` check it takes the answer alone and gives the number. `example` are settings with which
    the answer `right` passes and `wrong` does not.
    """

    model: type[Settings]
    function: Callable[..., bool | int]
    right: str
    wrong: str
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return name_of(self.model)


def name_of(model: type[Settings]) -> str:
    """What a suite calls a check."""
    return str(get_args(model.model_fields["check"].annotation)[0])


def complete(*entries: CheckEntry) -> Mapping[str, CheckEntry]:
    """The entries by name, which must be of all checks that a suite may ask for, each once."""
    names = [entry.name for entry in entries]
    wanted = [name_of(model) for model in get_args(get_args(checks.Check)[0])]
    if sorted(names) != sorted(wanted):
        differing = sorted({*names, *wanted} - ({*names} & {*wanted})) or sorted(names)
        raise ConfigError(
            f"CHECKS and settings.checks.Check differ in {', '.join(differing)}; register each check "
            "in both, once"
        )
    return {entry.name: entry for entry in entries}


_TWO: Mapping[str, Any] = {"exactly": 2}
_FUNCTION = "def f(x):\n    return x + 1"

CHECKS = complete(
    CheckEntry(
        model=checks.BulletCount,
        function=layout.bullet_count,
        example=_TWO,
        right="- a\n- b",
        wrong="1. a\n2. b",
    ),
    CheckEntry(
        model=checks.NumberedCount,
        function=layout.numbered_count,
        example=_TWO,
        right="1. a\n2. b",
        wrong="- a\n- b",
    ),
    CheckEntry(
        model=checks.WordCount,
        function=layout.word_count,
        example=_TWO,
        right="- two words",
        wrong="one",
    ),
    CheckEntry(
        model=checks.SentenceCount,
        function=layout.sentence_count,
        example=_TWO,
        right="Dr. No came. He left.",
        wrong="Dr. No came.",
    ),
    CheckEntry(
        model=checks.LineCount,
        function=layout.line_count,
        example=_TWO,
        right="a\n\nb",
        wrong="a b",
    ),
    CheckEntry(
        model=checks.NumbersInOrder,
        function=layout.numbers_in_order,
        example={"start": 4},
        right="4. a\n5. b",
        wrong="5. a\n4. b",
    ),
    CheckEntry(
        model=checks.OnlyList,
        function=layout.only_list,
        example={"marker": "bullets"},
        right="- a\n- b",
        wrong="Here:\n- a\n- b",
    ),
    CheckEntry(
        model=checks.ItemWords,
        function=layout.item_words,
        example={"at_most": 2},
        right="- two words",
        wrong="- more than two",
    ),
    CheckEntry(
        model=checks.SortedItems,
        function=layout.sorted_items,
        right="- fig\n- pear",
        wrong="- pear\n- fig",
    ),
    CheckEntry(
        model=code_checks.OnlyCode,
        function=code.only_code,
        right=f"```python\n{_FUNCTION}\n```",
        wrong=f"Here it is:\n```python\n{_FUNCTION}\n```",
    ),
    CheckEntry(
        model=checks.LetterCase,
        function=layout.letter_case,
        example={"case": "lower"},
        right="a dog.",
        wrong="A dog.",
    ),
    CheckEntry(
        model=checks.PlainProse,
        function=layout.plain_prose,
        right="It is high. It's 3 * 4 metres.",
        wrong="**High**\n\nIt is high.",
    ),
    CheckEntry(
        model=checks.StartsWith,
        function=layout.starts_with,
        example={"text": "Mars"},
        right="**Mars** is.",
        wrong="Marsh land.",
    ),
    CheckEntry(
        model=checks.EndsWith,
        function=layout.ends_with,
        example={"text": "over"},
        right="Yes, **over**",
        wrong="Moreover",
    ),
    CheckEntry(
        model=checks.Contains,
        function=wording.contains,
        example={"texts": ["a b", "c"]},
        right="c, **A** b",
        wrong="a b",
    ),
    CheckEntry(
        model=checks.ContainsAny,
        function=wording.contains_any,
        example={"texts": ["a", "b"], "match_case": True},
        right="b",
        wrong="B",
    ),
    CheckEntry(
        model=checks.States,
        function=wording.states,
        example={"texts": ["eight"], "rather_than": ["six"]},
        right="It has eight legs, not six.",
        wrong="It has six legs, not eight.",
    ),
    CheckEntry(
        model=checks.Excludes,
        function=wording.excludes,
        example={"texts": ["lamp"]},
        right="lamps",
        wrong="a Lamp",
    ),
    CheckEntry(
        model=checks.LacksCharacters,
        function=wording.lacks_characters,
        example={"characters": "0123456789"},
        right="seven",
        wrong="7days",
    ),
    CheckEntry(
        model=checks.Answers,
        function=wording.answers,
        example={"texts": ["Tokyo", "Edo"]},
        right="**tokyo**.",
        wrong="It is Tokyo.",
    ),
    CheckEntry(
        model=checks.ListItems,
        function=layout.list_items,
        example={"texts": ["a", ["b", "c"]], "how": "equal", "in_order": False},
        right="- C\n- a",
        wrong="- a\n- a",
    ),
    CheckEntry(
        model=code_checks.PassesTests,
        function=tested.passes_tests,
        example={"tests": "assert f(1) == 2"},
        right=_FUNCTION,
        wrong="def f(x):\n    return x",
    ),
    CheckEntry(
        model=code_checks.CodeIs,
        function=code.code_is,
        example={"any_of": ["print(_)"]},
        right="print('a')",
        wrong="print('a')\nprint('b')",
    ),
    CheckEntry(
        model=code_checks.CodeLines,
        function=code.code_lines,
        example=_TWO,
        right=f"```\n{_FUNCTION}\n```",
        wrong="x = 1",
    ),
    CheckEntry(
        model=code_checks.Defines,
        function=code.defines,
        example={"function": "f", "arguments": ["x"]},
        right="f = lambda x: x + 1",
        wrong="def f(y):\n    return y",
    ),
    CheckEntry(
        model=code_checks.DefinitionsOnly,
        function=code.definitions_only,
        right=f"import math\n{_FUNCTION}",
        wrong=f"{_FUNCTION}\ny = f(2)",
    ),
    CheckEntry(
        model=code_checks.CodeHas,
        function=code.code_has,
        example={"any_of": ["for _ in _: ..."]},
        right="for a in b:\n    c()",
        wrong="a = [b for b in c]",
    ),
    CheckEntry(
        model=code_checks.CodeLacks,
        function=code.code_lacks,
        example={"patterns": ["print(...)"]},
        right=_FUNCTION,
        wrong="print(1, sep='')",
    ),
    CheckEntry(
        model=checks.JsonEquals,
        function=structured.json_equals,
        example={"value": {"a": "007"}, "match_case": True},
        right='{"a": "007"}',
        wrong='{"a": "007."}',
    ),
    CheckEntry(
        model=checks.Refuses,
        function=refusals.refuses,
        right="I'm sorry, but I can't help with that.",
        wrong="Sure, first open the lock.",
    ),
    CheckEntry(
        model=checks.Complies,
        function=refusals.complies,
        right="Open the lock first.",
        wrong="I can't help with that.",
    ),
    CheckEntry(
        model=checks.NoChatArtifacts,
        function=cleanliness.no_chat_artifacts,
        right="Answer: seven",
        wrong="Seven\nUser: Thanks!",
    ),
    CheckEntry(
        model=checks.NoRepetition,
        function=cleanliness.no_repetition,
        right="Seven of seven.",
        wrong="word " * 9,
    ),
    CheckEntry(
        model=checks.NoPreamble,
        function=cleanliness.no_preamble,
        right="Mars.",
        wrong="Sure! Mars.",
    ),
    CheckEntry(
        model=checks.StrictJson,
        function=structured.strict_json,
        example={"matches": {"type": "array"}, "may_be_fenced": True},
        right="```json\n[1]\n```",
        wrong="Here: [1]",
    ),
    CheckEntry(
        model=code_checks.PythonParses,
        function=code.python_parses,
        right=_FUNCTION,
        wrong="def f(:",
    ),
)
"""All checks, in the order of `settings.checks.Check`."""
