"""Checks of JSON answers."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from evaluation.json_text import load_json
from evaluation.reading.text import plain
from evaluation.verification.fences import read_fences, whole_fence


def _frozen(value: Any) -> Any:
    """Return a hashable form of a value, in which 1.0 equals 1 but true does not."""
    if isinstance(value, list):
        return ("array", *map(_frozen, value))
    if isinstance(value, dict):
        return ("object", frozenset((key, _frozen(one)) for key, one in value.items()))
    return (isinstance(value, bool), value)


def _all_different(_: Any, wanted: bool, value: Any, __: Any) -> Any:
    """Check `uniqueItems` in one pass; jsonschema compares all pairs if it cannot sort."""
    if wanted and isinstance(value, list) and len(set(map(_frozen, value))) < len(value):
        yield ValidationError("an item appears twice")


_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"uniqueItems": _all_different}
)


def _strict_json(answer: str, /, matches: Mapping[str, Any], may_be_fenced: bool) -> bool:
    """Return whether the whole answer, or the one fence around it, is JSON that fits the schema."""
    fence = whole_fence(answer) if may_be_fenced else None
    text = fence.content if fence and fence.tag in ("", "json") else answer
    try:
        return bool(_Validator(matches).is_valid(load_json(text, finite=True)))
    except (
        ValueError,
        RecursionError,
        ArithmeticError,
    ):  # also for too deep nesting, too long numbers
        return False


def _json_equals(answer: str, /, value: Any, match_case: bool) -> bool:
    """Return whether the JSON of an answer (all of it, or its only code block) equals this value."""
    fences = read_fences(answer)
    for part in (answer, *(fence.content for fence in fences if len(fences) == 1)):
        try:
            return _same(load_json(part, finite=True), value, match_case)
        except ValueError:
            continue
    return False


def _same(found: Any, wanted: Any, match_case: bool) -> bool:
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and found.keys() == wanted.keys()
            and all(_same(found[key], one, match_case) for key, one in wanted.items())
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(
                _same(left, right, match_case) for left, right in zip(found, wanted, strict=True)
            )
        )
    if isinstance(wanted, str):
        return isinstance(found, str) and _spelled(found, match_case) == _spelled(
            wanted, match_case
        )
    return isinstance(found, bool) == isinstance(wanted, bool) and bool(found == wanted)


def _spelled(text: str, match_case: bool) -> str:
    read = plain(text).strip()
    return read if match_case else read.casefold()
