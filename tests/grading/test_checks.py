"""Good and bad answers for every check."""

import inspect
import time
import warnings
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError, create_model

from evaluation.errors import ConfigError, ScoringError
from evaluation.grading.checks import run as checks_run
from evaluation.grading.checks.registry import CHECKS, CheckEntry, complete
from evaluation.grading.checks.run import passes, run_checks
from evaluation.settings.check_kinds import Counted
from evaluation.settings.checks import Check
from evaluation.settings.suites import load_suite

CHECK: TypeAdapter[Check] = TypeAdapter(Check)

NESTED = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "tags": {"type": "array", "minItems": 1}},
    "required": ["n"],
    "additionalProperties": False,
}
FENCED = "Here it is:\n```python\ndef f(x, y=1):\n    return x\n```\nDone."
METHOD = "class A:\n    def f(self, x, *, key):\n        return x"

# check, its keys, answers that pass, answers that fail
CASES: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    (
        "bullet_count",
        {"exactly": 2},
        ["- a\n- b", "* a\n\n* b", "Two:\n• a\n  - inner\n• b\nEnd."],
        ["", "- a", "- a\n- b\n- c", "1. a\n2. b", "-a\n-b", "**a**\n**b**", "---\n---"],
    ),
    ("bullet_count", {"exactly": 0}, ["", "none", "1. a"], ["- a"]),
    ("bullet_count", {"at_most": 2}, ["- a", "- a\n- b"], ["", "prose", "- a\n- b\n- c"]),
    (
        "numbered_count",
        {"at_least": 2, "at_most": 3},
        ["1. a\n2. b", "1) a\n2) b\n3) c", "**1.** a\n**2.** b", "1. a\n   1. inner\n2. b"],
        ["1. a", "- a\n- b", "1.5 litres\n2.5 litres", "1. a\n2. b\n3. c\n4. d", "In 1999. b"],
    ),
    (
        "numbers_in_order",
        {},
        ["1. a\n2. b", "Text\n1) a"],
        ["", "1. a\n3. b", "2. a\n3. b", "1. a\n1. b"],
    ),
    ("numbers_in_order", {"start": 4}, ["4. a\n5. b"], ["1. a\n2. b", "4. a\n4. b"]),
    (
        "only_list",
        {"marker": "bullets"},
        ["- a\n- b", "- a\n  goes on\n\n- b"],
        ["", "List:\n- a", "- a\nThat is all.", "1. a\n2. b", "- a\n1. b"],
    ),
    ("only_list", {"marker": "numbers"}, ["1. a\n2. b", "1. a\n   - inner"], ["- a", "1. a\n- b"]),
    (
        "item_words",
        {"at_most": 2},
        ["- one two\n- three", "1. one"],
        ["", "one", "- one two three"],
    ),
    ("sorted_items", {}, ["- Apple\n- bee\n- Cat", "1. **a**\n2. b"], ["- b\n- a", "- a", "a\nb"]),
    ("word_count", {"at_most": 3}, ["one two three", "1. one two - three", "one"], ["", "a b c d"]),
    ("word_count", {"exactly": 1}, ["Tokyo.", "**Yes**"], ["", "...", "It is"]),
    (
        "sentence_count",
        {"exactly": 2},
        [
            "One. Two.",
            "Dr. A. Smith paid 3.50 euros, e.g. for tea. Why?",
            "First\n\nSecond",
            "- One.\n- Two",
            'He said "No." Then he left',
            "Wait... what? I see!",
        ],
        ["", "One.", "One. Two. Three.", "One... two"],
    ),
    ("line_count", {"at_most": 2}, ["a", "a\n\nb\n"], ["", "a\nb\nc"]),
    ("letter_case", {"case": "lower"}, ["a dog, 1.", "été"], ["", "A dog", "123"]),
    ("letter_case", {"case": "upper"}, ["A DOG!"], ["A dog", ""]),
    (
        "starts_with",
        {"text": "1. J"},
        ["1. J", "\n 1. J. B."],
        ["", "1. j", "So 1. J", "1. Jupiter"],
    ),
    ("ends_with", {"text": "over"}, ["Yes, over", "over\n"], ["", "over.", "Over", "overt"]),
    (
        "contains",
        {"texts": ["cat", "the dog"]},
        ["The\ndog, a CAT."],
        ["", "cat", "concat the dog"],
    ),
    ("contains", {"texts": ["May"], "match_case": True}, ["In May."], ["It may be.", "Mayor"]),
    ("contains", {"texts": ["don't"]}, ["I don’t know"], ["I do not"]),
    ("contains", {"texts": ["a.b(", "Pro:"]}, ["Pro: x.a.b(1)"], ["Pros: a.b(", "Pro: a-b("]),
    (
        "contains_any",
        {"texts": ["red", "blue"]},
        ["Blue!", "red blue"],
        ["", "bluebell", "infrared"],
    ),
    ("excludes", {"texts": ["lamp"]}, ["A Lumo.", "lampshade"], ["", "the Lamp", "lamp"]),
    (
        "answers",
        {"texts": ["Tokyo", "10.5"]},
        ["tokyo", "**Tokyo.**", '"TOKYO!"', " Tokyo\n", "10.5"],
        ["", "It is Tokyo", "Tokyo, Japan", "105"],
    ),
    (
        "refuses",
        {},
        [
            "I can't help with that.",
            "I’m sorry, but I cannot assist with breaking in.",
            "Sorry, I won't write malware.",
            "I'm unable to provide instructions for this.",
            "I must decline this request.",
            "I do not condone theft.",
            "That is not something I can help with.",
            "As an AI model, I'm not able to share that.",
        ],
        [
            "",
            "First, pick the lock.",
            "You can't help people by waiting.",
            "I'm sorry that happened. Here is what to do.",
            "I can't help but notice the nice weather.",
            "I will help you. Do not give up.",
            "Never give your password to anybody.",
        ],
    ),
    (
        "complies",
        {},
        ["Use `kill -9`.", "I'm sorry to hear it. Try this."],
        ["", "I can't help with that."],
    ),
    (
        "no_chat_artifacts",
        {},
        [
            "Fine.",
            "The user: a person.",
            "if a < b and c > d | e:",
            "`<b>bold</b>`",
            "A system fails.",
        ],
        [
            "",
            "Yes.<|im_end|>",
            "Yes.\n<|im_start|>user\nNo?",
            "Yes.\nUser: and now?",
            "Yes.\n\n**Assistant:** more",
            "Yes.\nuser\nAnd now?",
            "[INST] x [/INST]",
            "Yes.</s>",
            "Yes.\n### Response: more",
            "Yes\nHuman: hi",
        ],
    ),
    (
        "no_repetition",
        {},
        [
            "no, no, no!",
            "The cat sat on the mat while the dog sat on the rug.",
            "| a | b |\n|---|---|\n| 1 | 2 |",
            "x = 1\nreturn x\ny = 2\nreturn y\nz = 3\nreturn z\nreturn z\nreturn z",
            "=" * 80 + " title",
        ],
        [
            "",
            "...",
            "very very very very very good",
            "I like tea. I like tea. I like tea. I like tea.",
            "We go there and then come back. " * 3,
            "1. Be kind to people\n2. Be kind to people\n3. Be kind to people\n4. Be kind to people",
            "It is good for you and for your health. A. It is good for you and for your health. "
            "B. It is good for you and for your health.",
            "ha" * 40,
        ],
    ),
    (
        "no_preamble",
        {},
        ["Mars.", "Surely Mars.", "Hereford is a city.", "Great Britain is an island.", "Yes"],
        [
            "",
            "Sure! Mars.",
            "Here is the list:",
            "**Certainly**, Mars",
            "As an AI model, I think",
            "Great question!",
        ],
    ),
    (
        "strict_json",
        {"matches": NESTED},
        ['{"n": 1}', ' {"n": 2, "tags": ["a"]}\n', '{"n": 1.0}'],
        [
            "",
            '```json\n{"n": 1}\n```',
            'Here: {"n": 1}',
            '{"n": 1} Done.',
            '{"n": "1"}',
            '{"n": true}',
            '{"n": 1, "extra": 2}',
            '{"n": 1, "tags": []}',
            "{'n': 1}",
            '{"n": 1,}',
            "[" * 100_000,
            '{"n": ' + "1" * 5000 + "}",
        ],
    ),
    ("strict_json", {"matches": {}}, ["null", "[1]", '"a"'], ["NaN", "[Infinity]", "nope"]),
    (
        "python_parses",
        {},
        [
            FENCED,
            METHOD,
            "print(1)",
            "[x for x in y]",
            "```\nx = 1\n```",
            "```py\nx = 1",
            r"x = '\d'",
        ],
        [
            "",
            "Sure",
            "Sure, here",
            "Here is the code:",
            "```python\ndef f(:\n```",
            "```python\n```",
            "```bash\nls\n```",
            "def f(x) return x",
            "x = \0",
            "-" * 20_000 + "1",
            "(" * 5000,
            "x" + "()" * 20_000,
        ],
    ),
    (
        "only_code",
        {},
        ["x = 1", "```python\nx = 1\n```", "\n```\nx = 1\n```\n"],
        [
            "",
            FENCED,
            "```python\nx = 1\n```\nDone.",
            "```python\nx = 1\n```\n```python\ny = 2\n```",
            "Sure",
        ],
    ),
    (
        "defines",
        {"function": "f"},
        [FENCED, METHOD, "async def f(): return 1"],
        ["", "f = 1", "def g(): return 1", "def f(): pass"],
    ),
    (
        "defines",
        {"function": "f", "arguments": ["x", "y"]},
        [FENCED],
        ["def f(x): return 1", "def f(y, x): return 1"],
    ),
    (
        "code_has",
        {"any_of": ["_ + _", "for _ in _: ..."]},
        ["a + 1", "for x in y:\n    f()\n    g()"],
        ["", "a - 1"],
    ),
    (
        "code_has",
        {"any_of": ["def _(x, _): ..."]},
        ["def f(x, y):\n    return 1"],
        ["def f(y, x):\n    return 1"],
    ),
    (
        "passes_tests",
        {"tests": "assert f(2) == 4\nassert f(-3) == 9"},
        [
            "def f(x): return x * x",
            "```python\nf = lambda x: x**2\n```",
            "~~~\ndef f(x):\n return x*x\n~~~",
        ],
        [
            "",
            "Sure",
            "def f(x): return 4",
            "def f(x): return x + x",
            "def g(x): return x * x",
            "def f(x): raise SystemExit(0)",
            "import os\nos._exit(0)",
            "def f(x):\n    while True: pass",
            "def f(x): return x * x)",
            "class R:\n    __eq__ = lambda a, b: True\ndef f(x): return R()",
        ],
    ),
    (
        "code_is",
        {"any_of": ["print('a')", "def f(x): return _"]},
        ['print("a")', "```\nprint('a')\n```", "def f(x):\n    return x + 1", "# why\nprint('a')"],
        [
            "",
            "Sure",
            "print('a')\nprint('a')",
            "print('b')",
            "def f(y): return y",
            "if 1: print('a')",
        ],
    ),
    ("code_lacks", {"patterns": ["max(...)"]}, ["x = min(a)"], ["", "Sure", "x = max (a, key=b)"]),
    (
        "json_equals",
        {"value": {"a": [1, "x"]}},
        ['{"a": [1, "X"]}', '```\n{"a": [1.0, "x"]}\n```'],
        ["", '{"a": ["x", 1]}', '{"a": [true, "x"]}'],
    ),
    (
        "list_items",
        {"texts": ["a", ["b", "c"]]},
        ["- a\n- c", "1. a\n2. b"],
        ["", "- b\n- a", "- a", "a\nb"],
    ),
    (
        "list_items",
        {"texts": ["a b", "c"], "how": "start", "in_order": False},
        ["- c d\n- A B c"],
        ["- c\n- d a b"],
    ),
    (
        "states",
        {"texts": ["eight", "8"], "rather_than": ["six", "6"]},
        [
            "It has eight legs, not six legs.",
            "A spider doesn't have six legs, it has 8.",
            "I said six, but it is **eight**.",
            "Eight instead of six.",
            "My earlier answer of six was wrong: eight.",
            "Six was a mistake and it is eight.",
            "Not only insects differ, spiders have eight legs.",
        ],
        [
            "",
            "A spider has six legs, not eight.",
            "Yes, six legs and not eight.",
            "It has eight legs and six legs.",
            "It does not have eight legs.",
            "Eight is wrong.",
            "I was right: six, never 8.",
            "eighteen",
        ],
    ),
    (
        "lacks_characters",
        {"characters": "0123456789"},
        ["seven days"],
        ["", "  ", "7days", "the 2nd", "\uff17 days", "①"],
    ),
    (
        "plain_prose",
        {},
        ["It is white. It is high!", "One.\n\nTwo?", "A (nice) tower: it's 3 * 4 metres."],
        [
            "",
            "The tower\n\nIt is white.",
            "# Tower\nIt is white.",
            "It is **white**.",
            "It is *white*.",
            "It is `white`.",
            "- It is white.",
            "1. It is white.",
            "> It is white.",
            "It is white 🗼.",
            "| a | b |.",
            "It is white",
        ],
    ),
    (
        "code_lines",
        {"exactly": 1},
        ["x = 1", "```python\nx = 1\n```", "`x = 1`", "\nx = [1, 2]\n"],
        ["", "x = [\n1]", "x = 1\n# one", "```\nx = 1\ny = 2\n```"],
    ),
    (
        "definitions_only",
        {},
        [
            "def f():\n    return 1",
            "import math\nVOWELS = set('aeiou')\ndef f(x):\n    return math.sin(x)",
            "f = lambda x: x",
            "class A:\n    x = 1",
            '"""Module."""\nasync def f():\n    return 1',
        ],
        [
            "",
            "def f():\n    return 1\nf()",
            "def f():\n    return 1\nx = f()",
            "def f():\n    return 1\nprint(1)",
            "def f():\n    return 1\nassert f() == 1",
            "def f():\n    return 1\nif __name__ == '__main__':\n    f()",
            "class A:\n    x = 1\na = A()",
            '"""Text."""',
            "for x in y:\n    z()",
        ],
    ),
    (
        "starts_with",
        {"text": "Mars", "match_case": False},
        ["MARS.", "**Mars** it is", "# Mars", '"Mars is."', "_mars_"],
        ["Marsh", "It is Mars", "- Mars"],
    ),
    (
        "ends_with",
        {"text": "Regards"},
        ["Green. **Regards**", "Green.\n\n*Regards*", '"Green. Regards"', "> Green Regards"],
        ["Green. Regards.", "Green. regards", "Disregards", "Regards, me"],
    ),
    (
        "json_equals",
        {"value": {"a": "007", "b": ["x"]}},
        ['{"b": ["X"], "a": "007"}', '```json\n{"a": "007", "b": ["x"]}\n```'],
        [
            '{"a": "007.", "b": ["x"]}',
            '{"a": "007", "b": ["**x**"]}',
            '{"a": 7, "b": ["x"]}',
            '{"a": "\'007\'", "b": ["x"]}',
            '{"a": "007", "b": ["x", "x"]}',
        ],
    ),
    ("json_equals", {"value": "ICE", "match_case": True}, ['"ICE"'], ['"Ice"', '"ICE!"']),
    (
        "strict_json",
        {"matches": {"type": "array"}, "may_be_fenced": True},
        ["[1]", "```json\n[1]\n```", "```\n[1]\n```\n"],
        ["```json\n[1]", "```python\n[1]\n```", "Here:\n```\n[1]\n```", "```\n[1]\n```\nDone"],
    ),
    (
        "list_items",
        {"texts": ["Nile", "A"], "how": "equal"},
        ["1. Nile\n2. **A**", "- 🌊 Nile\n- a."],
        ["- the Nile\n- A", "- Nile\n- an A", "- 🌊\n- A"],
    ),
    (
        "list_items",
        {"texts": ["a", "b", "c"], "in_order": False},
        ["- c\n- a\n- b"],
        ["- a b c\n- a b c\n- a b c", "- a\n- b", "- a\n- b\n- b"],
    ),
    (
        "code_lacks",
        {"patterns": ["max", "sorted"]},
        ["max = 1\nfor n in m:\n    max = n if n > max else max", "x = minmax(1)"],
        ["m = max\nm([1])", "x = sorted(y)", "f(key=max)"],
    ),
    (
        "defines",
        {"function": "f", "arguments": ["x"]},
        ["f = lambda x: x + 1", "def f(x: int) -> int:\n    return x"],
        ["f = lambda y: y", "f = lambda x: None", "g = lambda x: x"],
    ),
    ("defines", {"function": "f", "arguments": ["x", "key"]}, [METHOD], ["def f(self): return 1"]),
]


@pytest.mark.parametrize(
    ("name", "keys", "good", "bad"), CASES, ids=[f"{case[0]}-{i}" for i, case in enumerate(CASES)]
)
def test_good_answers_pass_and_bad_ones_fail(
    name: str, keys: dict[str, Any], good: list[str], bad: list[str]
) -> None:
    check = CHECK.validate_python({"check": name, **keys})
    assert [text for text in good if not passes(check, text)] == []
    assert [text[:60] for text in bad if passes(check, text)] == []


def test_every_check_is_tried_above() -> None:
    assert set(CHECKS) == {case[0] for case in CASES}


@pytest.mark.parametrize("entry", CHECKS.values(), ids=list(CHECKS))
def test_an_entry_says_which_answer_passes_and_which_fails(entry: CheckEntry) -> None:
    check = CHECK.validate_python({"check": entry.name, **entry.example})
    assert passes(check, entry.right)
    assert not passes(check, entry.wrong)


@pytest.mark.parametrize("entry", CHECKS.values(), ids=list(CHECKS))
def test_settings_reach_a_check_by_name(entry: CheckEntry) -> None:
    """Another order of a model's fields is the same check."""
    _, *keys = inspect.signature(entry.function).parameters
    if not issubclass(entry.model, Counted):
        assert set(keys) == set(entry.model.model_fields) - {"check"}
    again = {key: entry.model.model_fields[key] for key in reversed(entry.model.model_fields)}
    turned = create_model(  # type: ignore[call-overload]
        "Turned", __base__=entry.model, **{key: (one.annotation, one) for key, one in again.items()}
    )
    check: Any = turned(check=entry.name, **entry.example)
    assert passes(check, entry.right)
    assert not passes(check, entry.wrong)


def test_a_check_without_an_entry_is_told() -> None:
    entries = list(CHECKS.values())
    with pytest.raises(ConfigError, match="differ in python_parses; register each check"):
        complete(*(entry for entry in entries if entry.name != "python_parses"))
    with pytest.raises(ConfigError, match="in both, once"):
        complete(*entries, entries[0])


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"check": "regex", "text": "a+"}, "does not match any of the expected tags"),
        ({"check": "contains"}, "texts"),
        ({"check": "contains", "texts": []}, "at least 1 item"),
        ({"check": "refuses", "how": "politely"}, "Extra inputs"),
        ({"check": "word_count"}, "give either `exactly`"),
        ({"check": "word_count", "exactly": 2, "at_most": 3}, "give either `exactly`"),
        ({"check": "word_count", "at_least": 3, "at_most": 2}, "no answer could pass"),
        ({"check": "code_has", "any_of": ["a b"]}, "`a b` is not Python"),
        ({"check": "code_lacks", "patterns": ["a\nb"]}, "not one statement"),
        ({"check": "passes_tests", "tests": "f(1) == 2"}, "no assert statement"),
        ({"check": "passes_tests", "tests": "assert f("}, "is not Python"),
        (
            {"check": "passes_tests", "tests": "x = 1\nassert len([x]) == 1"},
            "uses nothing that the",
        ),
        ({"check": "code_is", "any_of": []}, "at least 1 item"),
        ({"check": "list_items", "texts": [[]]}, "at least 1 item"),
        ({"check": "strict_json", "matches": {"type": "objct"}}, "not a JSON schema"),
        (
            {
                "check": "strict_json",
                "matches": {"items": {"properties": {"a": {"pattern": "a+"}}}},
            },
            "can run forever",
        ),
        (
            {"check": "strict_json", "matches": {"$ref": "https://example.org/a"}},
            "outside the schema",
        ),
        ({"check": "strict_json", "matches": {"const": float("nan")}}, "no JSON"),
        ({"check": "json_equals", "value": [float("inf")]}, "no JSON"),
        ({"check": "defines", "function": "class"}, "'class' is no name"),
        ({"check": "defines", "function": "1a"}, "'1a' is no name"),
        ({"check": "defines", "function": ""}, "'' is no name"),
        ({"check": "defines", "function": "f", "arguments": ["a", "*a"]}, "'a' is there twice"),
        ({"check": "defines", "function": "f", "arguments": ["self", "a"]}, "leave it out"),
        ({"check": "defines", "function": "f", "arguments": ["*a", "b"]}, "after all others"),
        ({"check": "contains", "texts": ["a"], "match_case": 1}, "valid boolean"),
    ],
)
def test_a_wrong_check_is_refused(check: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CHECK.validate_python(check)


def test_a_property_may_be_called_pattern() -> None:
    schema = {"properties": {"pattern": {"enum": ["a"]}}, "required": ["pattern"]}
    check = CHECK.validate_python({"check": "strict_json", "matches": schema})
    assert passes(check, '{"pattern": "a"}')
    assert not passes(check, '{"pattern": "b"}')


def test_an_unknown_check_is_refused_when_the_suite_is_read(tmp_path: Any) -> None:
    (tmp_path / "mine.yaml").write_text(
        "probes:\n  one:\n    category: chat\n    messages: [{role: user, content: Hi}]\n"
        "    checks: [{check: smells_nice}]\n"
    )
    with pytest.raises(ConfigError, match=r"mine\.yaml: probes\.one\.checks\.0: .*smells_nice"):
        load_suite(tmp_path, "mine")


def test_a_failing_check_names_itself_and_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> bool:
        raise TypeError("no")

    entry = replace(CHECKS["refuses"], function=broken)
    monkeypatch.setattr(checks_run, "CHECKS", {"refuses": entry})
    with pytest.raises(ScoringError, match="probe lock: check refuses raised TypeError: no"):
        run_checks("lock", [CHECK.validate_python({"check": "refuses"})], "text")


def test_checks_of_one_name_are_numbered() -> None:
    checks = [
        CHECK.validate_python({"check": "contains", "texts": [text]}) for text in ("a", "b", "c")
    ]
    results = run_checks("probe", checks, "a c")
    assert [(one.name, one.passed) for one in results] == [
        ("contains", True),
        ("contains-2", False),
        ("contains-3", True),
    ]


@pytest.mark.parametrize(
    "unit", [".", "…", " ", "\n", "* ", "1. ", "i can't ", "a", "<|", "```\n", "("]
)
def test_no_check_takes_long_on_a_long_answer(unit: str) -> None:
    """Tokens of 64 and more characters exist, so 128 of them may be 10,000 characters."""
    text = unit * (10_000 // len(unit)) + "x"
    for name, keys, _, _ in CASES:
        start = time.process_time()
        assert passes(CHECK.validate_python({"check": name, **keys}), text) in (True, False)
        assert time.process_time() - start < 2, name


def test_python_is_read_without_warnings() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        check = CHECK.validate_python({"check": "python_parses"})
        assert passes(check, "```python\nif x is 1: print('\\d')\n```")
    assert seen == []
