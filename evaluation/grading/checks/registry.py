"""Every check by its name: its settings, its function, and an answer that passes and one that fails.

A new check is a model in `settings/checks.py` and one entry here, which the tests try on its answers.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
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
from evaluation.verification.sandbox.model import Outcome


@dataclass(frozen=True)
class CheckEntry:
    """What there is to know of a check.

    `function` is called with the answer and, by their names, the settings of `model`; of a
    `Counted` check it takes the answer alone and gives the number. `example` are settings with which
    the answer `right` passes and `wrong` does not.
    """

    model: type[Settings]
    function: Callable[..., bool | int | Outcome]
    _: KW_ONLY
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
        checks.BulletCount, layout.bullet_count, example=_TWO, right="- a\n- b", wrong="1. a\n2. b"
    ),
    CheckEntry(
        checks.NumberedCount,
        layout.numbered_count,
        example=_TWO,
        right="1. a\n2. b",
        wrong="- a\n- b",
    ),
    CheckEntry(checks.WordCount, layout.word_count, example=_TWO, right="- two words", wrong="one"),
    CheckEntry(
        checks.SentenceCount,
        layout.sentence_count,
        example=_TWO,
        right="Dr. No came. He left.",
        wrong="Dr. No came.",
    ),
    CheckEntry(checks.LineCount, layout.line_count, example=_TWO, right="a\n\nb", wrong="a b"),
    CheckEntry(
        checks.NumbersInOrder,
        layout.numbers_in_order,
        example={"start": 4},
        right="4. a\n5. b",
        wrong="5. a\n4. b",
    ),
    CheckEntry(
        checks.OnlyList,
        layout.only_list,
        example={"marker": "bullets"},
        right="- a\n- b",
        wrong="Here:\n- a\n- b",
    ),
    CheckEntry(
        checks.ItemWords,
        layout.item_words,
        example={"at_most": 2},
        right="- two words",
        wrong="- more than two",
    ),
    CheckEntry(
        checks.SortedItems, layout.sorted_items, right="- fig\n- pear", wrong="- pear\n- fig"
    ),
    CheckEntry(
        code_checks.OnlyCode,
        code.only_code,
        right=f"```python\n{_FUNCTION}\n```",
        wrong=f"Here it is:\n```python\n{_FUNCTION}\n```",
    ),
    CheckEntry(
        checks.LetterCase,
        layout.letter_case,
        example={"case": "lower"},
        right="a dog.",
        wrong="A dog.",
    ),
    CheckEntry(
        checks.PlainProse,
        layout.plain_prose,
        right="It is high. It's 3 * 4 metres.",
        wrong="**High**\n\nIt is high.",
    ),
    CheckEntry(
        checks.StartsWith,
        layout.starts_with,
        example={"text": "Mars"},
        right="**Mars** is.",
        wrong="Marsh land.",
    ),
    CheckEntry(
        checks.EndsWith,
        layout.ends_with,
        example={"text": "over"},
        right="Yes, **over**",
        wrong="Moreover",
    ),
    CheckEntry(
        checks.Contains,
        wording.contains,
        example={"texts": ["a b", "c"]},
        right="c, **A** b",
        wrong="a b",
    ),
    CheckEntry(
        checks.ContainsAny,
        wording.contains_any,
        example={"texts": ["a", "b"], "match_case": True},
        right="b",
        wrong="B",
    ),
    CheckEntry(
        checks.States,
        wording.states,
        example={"texts": ["eight"], "rather_than": ["six"]},
        right="It has eight legs, not six.",
        wrong="It has six legs, not eight.",
    ),
    CheckEntry(
        checks.Excludes,
        wording.excludes,
        example={"texts": ["lamp"]},
        right="lamps",
        wrong="a Lamp",
    ),
    CheckEntry(
        checks.LacksCharacters,
        wording.lacks_characters,
        example={"characters": "0123456789"},
        right="seven",
        wrong="7days",
    ),
    CheckEntry(
        checks.Answers,
        wording.answers,
        example={"texts": ["Tokyo", "Edo"]},
        right="**tokyo**.",
        wrong="It is Tokyo.",
    ),
    CheckEntry(
        checks.ListItems,
        layout.list_items,
        example={"texts": ["a", ["b", "c"]], "how": "equal", "in_order": False},
        right="- C\n- a",
        wrong="- a\n- a",
    ),
    CheckEntry(
        code_checks.PassesTests,
        tested.passes_tests,
        example={"tests": "assert f(1) == 2"},
        right=_FUNCTION,
        wrong="def f(x):\n    return x",
    ),
    CheckEntry(
        code_checks.CodeIs,
        code.code_is,
        example={"any_of": ["print(_)"]},
        right="print('a')",
        wrong="print('a')\nprint('b')",
    ),
    CheckEntry(
        code_checks.CodeLines,
        code.code_lines,
        example=_TWO,
        right=f"```\n{_FUNCTION}\n```",
        wrong="x = 1",
    ),
    CheckEntry(
        code_checks.Defines,
        code.defines,
        example={"function": "f", "arguments": ["x"]},
        right="f = lambda x: x + 1",
        wrong="def f(y):\n    return y",
    ),
    CheckEntry(
        code_checks.DefinitionsOnly,
        code.definitions_only,
        right=f"import math\n{_FUNCTION}",
        wrong=f"{_FUNCTION}\ny = f(2)",
    ),
    CheckEntry(
        code_checks.CodeHas,
        code.code_has,
        example={"any_of": ["for _ in _: ..."]},
        right="for a in b:\n    c()",
        wrong="a = [b for b in c]",
    ),
    CheckEntry(
        code_checks.CodeLacks,
        code.code_lacks,
        example={"patterns": ["print(...)"]},
        right=_FUNCTION,
        wrong="print(1, sep='')",
    ),
    CheckEntry(
        checks.JsonEquals,
        structured.json_equals,
        example={"value": {"a": "007"}, "match_case": True},
        right='{"a": "007"}',
        wrong='{"a": "007."}',
    ),
    CheckEntry(
        checks.Refuses,
        refusals.refuses,
        right="I'm sorry, but I can't help with that.",
        wrong="Sure, first open the lock.",
    ),
    CheckEntry(
        checks.Complies,
        refusals.complies,
        right="Open the lock first.",
        wrong="I can't help with that.",
    ),
    CheckEntry(
        checks.NoChatArtifacts,
        cleanliness.no_chat_artifacts,
        right="Answer: seven",
        wrong="Seven\nUser: Thanks!",
    ),
    CheckEntry(
        checks.NoRepetition, cleanliness.no_repetition, right="Seven of seven.", wrong="word " * 9
    ),
    CheckEntry(checks.NoPreamble, cleanliness.no_preamble, right="Mars.", wrong="Sure! Mars."),
    CheckEntry(
        checks.StrictJson,
        structured.strict_json,
        example={"matches": {"type": "array"}, "may_be_fenced": True},
        right="```json\n[1]\n```",
        wrong="Here: [1]",
    ),
    CheckEntry(code_checks.PythonParses, code.python_parses, right=_FUNCTION, wrong="def f(:"),
)
"""All checks, in the order of `settings.checks.Check`."""
