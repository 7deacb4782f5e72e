"""What a check of a probe expected and what it found instead, for answers that fail it."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evaluation.settings.check_kinds import Counted
from evaluation.settings.checks import Check
from evaluation.verification.checks import phrases
from evaluation.verification.checks.markdown import read_lists
from evaluation.verification.checks.registry import CHECKS, named
from evaluation.verification.checks.text import words

LONGEST = 80
"""Characters of an answer that are quoted."""


def explanations(checks: Sequence[Check], passed: Mapping[str, bool], text: str) -> Iterable[str]:
    """Yield a sentence for each check of a probe that an answer fails.

    Args:
        checks: The probe's checks, in the order of the suite.
        passed: Whether the answer passes, by the name that the results give the check.
        text: The part of the answer that is checked.

    Yields:
        The check's name, what it expected and what it got.
    """
    for name, check in named(checks):
        if passed.get(name) is False:
            yield f"{name}: expected {_expected(check)}; got {_found_in(check, text)}"


def _expected(check: Check) -> str:
    """Return what a check requires, such as `words (at_most 20)`."""
    asked = str(type(check).model_fields["check"].description).rstrip(".")
    given = sorted(check.model_fields_set - {"check", "kind"})
    settings = ", ".join(f"{name} {_quoted(getattr(check, name))}" for name in given)
    return f"{asked} ({settings})" if settings else asked


def _found_in(check: Check, text: str) -> str:
    """Return what a failing check found in an answer, or else the answer's beginning."""
    if not text.strip():
        return "nothing"
    if isinstance(check, Counted):
        return str(CHECKS[check.check](text))
    find = FOUND.get(check.check)
    return find(check, text) if find else _beginning(text)


def _quoted(value: Any) -> str:
    if isinstance(value, tuple):
        return " | ".join(map(_quoted, value))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _cut(f"“{text}”" if isinstance(value, str) else text, 2 * LONGEST)


def _cut(text: str, most: int = LONGEST) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"


def _beginning(text: str) -> str:
    return f"“{_cut(text)}”"


def _ending(_: Any, text: str) -> str:
    line = " ".join(text.split())
    return f"“…{line[-LONGEST:]}”" if len(line) > LONGEST else f"“{line}”"


def _terms(check: Any, text: str) -> str:
    """Return the forbidden terms that are there, or the asked ones that are not."""
    is_forbidden = check.check == "excludes"
    terms = tuple(
        term
        for term in check.texts
        if phrases.has_phrase(text, term, check.match_case) == is_forbidden
    )
    if not is_forbidden:
        return f"no {_quoted(terms)}"
    return _quoted(terms) if terms else _beginning(text)


def _longest_item(_: Any, text: str) -> str:
    items = [item.text for item in read_lists(text).items]
    return f"{max(len(words(item)) for item in items)} words" if items else "no list"


def _json(_: Any, text: str) -> str:
    try:
        json.loads(text)
    except ValueError as error:
        return f"no JSON ({error}): {_beginning(text)}"
    return _beginning(text)


FOUND: Mapping[str, Callable[[Any, str], str]] = {
    "ends_with": _ending,
    "contains": _terms,
    "contains_any": _terms,
    "excludes": _terms,
    "item_words": _longest_item,
    "strict_json": _json,
    "json_equals": _json,
}
