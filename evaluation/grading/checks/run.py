"""Runs the checks of a probe on an answer."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluation.errors import CageError, ScoringError
from evaluation.grading.checks import (
    cleanliness,
    code,
    layout,
    refusals,
    structured,
    tested,
    wording,
)
from evaluation.settings.check_kinds import Kind
from evaluation.settings.checks import Check, Counted

COUNTS: dict[str, Callable[[str], int]] = {
    "bullet_count": layout.bullet_count,
    "numbered_count": layout.numbered_count,
    "word_count": layout.word_count,
    "sentence_count": layout.sentence_count,
    "line_count": layout.line_count,
}
"""What each counted check counts; its bounds are in the check itself."""

FUNCTIONS: dict[str, Callable[..., bool]] = {
    "numbers_in_order": layout.numbers_in_order,
    "only_list": layout.only_list,
    "item_words": layout.item_words,
    "sorted_items": layout.sorted_items,
    "letter_case": layout.letter_case,
    "starts_with": layout.starts_with,
    "ends_with": layout.ends_with,
    "contains": wording.contains,
    "contains_any": wording.contains_any,
    "excludes": wording.excludes,
    "answers": wording.answers,
    "list_items": layout.list_items,
    "refuses": refusals.refuses,
    "complies": refusals.complies,
    "strict_json": structured.strict_json,
    "json_equals": structured.json_equals,
    "python_parses": code.python_parses,
    "only_code": code.only_code,
    "passes_tests": tested.passes_tests,
    "code_is": code.code_is,
    "defines": code.defines,
    "code_has": code.code_has,
    "code_lacks": code.code_lacks,
    "no_chat_artifacts": cleanliness.no_chat_artifacts,
    "no_repetition": cleanliness.no_repetition,
    "no_preamble": cleanliness.no_preamble,
}
"""All others, called with the answer and the check's own keys in the order it declares them."""


@dataclass(frozen=True)
class CheckResult:
    """One check of one answer; a second check of a name is called `name-2`, and so on."""

    name: str
    kind: Kind
    passed: bool


def passes(check: Check, text: str) -> bool:
    """Whether an answer passes a check."""
    if isinstance(check, Counted):
        return check.holds(COUNTS[check.check](text))
    parameters = [getattr(check, name) for name in type(check).model_fields if name != "check"]
    return FUNCTIONS[check.check](text, *parameters)


def run_checks(probe: str, checks: Sequence[Check], text: str) -> list[CheckResult]:
    """Results of all checks of a probe, in order.

    Raises:
        ScoringError: naming probe and check, where a check itself fails. An error is not a wrong
            answer.
        CageError: code cannot be run on this machine.
    """
    results = []
    seen: Counter[str] = Counter()
    for check in checks:
        seen[check.check] += 1
        number = seen[check.check]
        try:
            passed = passes(check, text)
        except CageError:
            raise
        except Exception as error:
            raise ScoringError(
                f"probe {probe}: check {check.check} raised {type(error).__name__}: {error}; "
                "fix the check or take it out of the suite"
            ) from error
        name = check.check if number == 1 else f"{check.check}-{number}"
        results.append(CheckResult(name, check.kind, passed))
    return results
