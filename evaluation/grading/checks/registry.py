"""Every check by its name, and an answer run through the checks of a probe.

A new check is a model in `settings/checks.py` and its function here, to which its settings are given
by their names.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from evaluation.errors import ConfigError, SandboxError, ScoringError
from evaluation.grading.checks import cleanliness, code, layout, refusals, structured, wording
from evaluation.settings import checks, code_checks
from evaluation.settings.check_kinds import Counted, Kind
from evaluation.settings.checks import Check
from evaluation.settings.model import Settings
from evaluation.verification.sandbox.model import Outcome

Function = Callable[..., bool | int | Outcome]
"""Called with the answer and the check's settings; that of a `Counted` check gives a number."""


def name_of(model: type[Settings]) -> str:
    """Return what a suite calls a check."""
    return str(get_args(model.model_fields["check"].annotation)[0])


def complete(functions: Mapping[type[Settings], Function]) -> Mapping[str, Function]:
    """Return the functions by name; there must be one for each check that a suite may ask for."""
    registered, known = {*functions}, {*get_args(get_args(Check)[0])}
    if registered != known:
        raise ConfigError(
            f"CHECKS and settings.checks.Check differ in "
            f"{', '.join(sorted(map(name_of, registered ^ known)))}; register each check in both"
        )
    return {name_of(model): function for model, function in functions.items()}


CHECKS = complete(
    {
        checks.BulletCount: layout.bullet_count,
        checks.NumberedCount: layout.numbered_count,
        checks.WordCount: layout.word_count,
        checks.SentenceCount: layout.sentence_count,
        checks.LineCount: layout.line_count,
        checks.NumbersInOrder: layout.numbers_in_order,
        checks.OnlyList: layout.only_list,
        checks.ItemWords: layout.item_words,
        checks.SortedItems: layout.sorted_items,
        code_checks.OnlyCode: code.only_code,
        checks.LetterCase: layout.letter_case,
        checks.PlainProse: layout.plain_prose,
        checks.StartsWith: layout.starts_with,
        checks.EndsWith: layout.ends_with,
        checks.Contains: wording.contains,
        checks.ContainsAny: wording.contains_any,
        checks.States: wording.states,
        checks.Excludes: wording.excludes,
        checks.LacksCharacters: wording.lacks_characters,
        checks.Answers: wording.answers,
        checks.ListItems: layout.list_items,
        code_checks.PassesTests: code.passes_tests,
        code_checks.CodeIs: code.code_is,
        code_checks.CodeLines: code.code_lines,
        code_checks.Defines: code.defines,
        code_checks.DefinitionsOnly: code.definitions_only,
        code_checks.CodeHas: code.code_has,
        code_checks.CodeLacks: code.code_lacks,
        checks.JsonEquals: structured.json_equals,
        checks.Refuses: refusals.refuses,
        checks.Complies: refusals.complies,
        checks.NoChatArtifacts: cleanliness.no_chat_artifacts,
        checks.NoRepetition: cleanliness.no_repetition,
        checks.NoPreamble: cleanliness.no_preamble,
        checks.StrictJson: structured.strict_json,
        code_checks.PythonParses: code.python_parses,
    }
)
"""All checks."""


@dataclass(frozen=True)
class CheckResult:
    """One check of one answer; a second check of a name is called `name-2`, and so on."""

    name: str
    kind: Kind
    passed: bool
    note: str = ""
    """Result of code that is run: how its passing is counted (`sandbox.model.Outcome`)."""


def passes(check: Check, text: str) -> bool:
    """Return whether an answer passes a check."""
    return _outcome(check, text).passed is True


def _outcome(check: Check, text: str) -> Outcome:
    function = CHECKS[check.check]
    if isinstance(check, Counted):
        number = function(text)
        assert isinstance(number, int), check.check
        return Outcome(check.holds(number))
    keys = {key: getattr(check, key) for key in type(check).model_fields if key != "check"}
    found = function(text, **keys)
    return found if isinstance(found, Outcome) else Outcome(bool(found))


def run_checks(probe: str, checks: Sequence[Check], text: str) -> list[CheckResult]:
    """Return the results of all checks of a probe, in order.

    Raises:
        ScoringError: naming probe and check, where a check itself fails. An error is not a wrong
            answer.
        SandboxError: code cannot be run on this machine.
    """
    results = []
    seen: Counter[str] = Counter()
    for check in checks:
        seen[check.check] += 1
        number = seen[check.check]
        try:
            outcome = _outcome(check, text)
        except SandboxError:
            raise
        except Exception as error:
            raise ScoringError(
                f"probe {probe}: check {check.check} raised {type(error).__name__}: {error}; "
                "fix the check or take it out of the suite"
            ) from error
        name = check.check if number == 1 else f"{check.check}-{number}"
        results.append(CheckResult(name, check.kind, outcome.passed is True, outcome.note))
    return results
