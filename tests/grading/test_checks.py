"""Every check: its settings, its verdicts on good and bad answers, and its errors."""

import inspect
import time
import warnings
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError, create_model

from evaluation.errors import ConfigError, ScoringError
from evaluation.grading.checks import registry
from evaluation.grading.checks.registry import CHECKS, complete, passes, run_checks
from evaluation.settings.check_kinds import Counted
from evaluation.settings.checks import Check, PythonParses
from tests.grading.check_cases import CASES

CHECK: TypeAdapter[Check] = TypeAdapter(Check)


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


@pytest.mark.parametrize("name", CHECKS)
def test_settings_reach_a_check_by_name(name: str) -> None:
    """Another order of a model's fields is the same check."""
    _, keys, good, bad = next(case for case in CASES if case[0] == name and case[2] and case[3])
    model = type(CHECK.validate_python({"check": name, **keys}))
    _, *named = inspect.signature(CHECKS[name]).parameters
    if not issubclass(model, Counted):
        assert set(named) == set(model.model_fields) - {"check"}
    again = {key: model.model_fields[key] for key in reversed(model.model_fields)}
    turned = create_model(  # type: ignore[call-overload]
        "Turned", __base__=model, **{key: (one.annotation, one) for key, one in again.items()}
    )
    check: Any = turned(check=name, **keys)
    assert passes(check, good[0])
    assert not passes(check, bad[0])


def test_a_check_without_a_function_is_reported() -> None:
    functions = dict.fromkeys(get_args(get_args(Check)[0]), len)
    assert set(complete(functions)) == set(CHECKS)
    del functions[PythonParses]
    with pytest.raises(ConfigError, match="differ in python_parses; register each check"):
        complete(functions)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"check": "regex", "text": "a+"}, "does not match any of the expected tags"),
        ({"check": "contains", "texts": []}, "at least 1 item"),
        ({"check": "refuses", "how": "politely"}, "Extra inputs"),
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
        ({"check": "defines", "function": "class"}, "'class' is no name"),
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


def test_a_failing_check_names_itself_and_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> bool:
        raise TypeError("no")

    monkeypatch.setattr(registry, "CHECKS", {"refuses": broken})
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
