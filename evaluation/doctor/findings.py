"""Findings of the checks, and their table for the terminal."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from tabulate import tabulate

from evaluation.errors import first_few, printable_lines

State = Literal["ok", "warning", "fault"]

_STATES: tuple[State, ...] = ("ok", "warning", "fault")
_NAMED = 6
"""Number of subjects that are named if many have the same fault."""
_SENTENCES = 4
"""Number of different sentences that are shown for one check; `--json` has all."""


@dataclass(frozen=True)
class Finding:
    """A problem: one sentence that names it and ends with the remedy."""

    state: State
    subject: str
    """What has the problem, e.g. `stage1/2000`; empty if the sentence names it."""
    sentence: str


@dataclass(frozen=True)
class Check:
    """One line of the table: what was checked, and what was found."""

    name: str
    summary: str
    findings: tuple[Finding, ...] = ()

    @property
    def state(self) -> State:
        """The worst state of its findings; `ok` without findings."""
        return max((finding.state for finding in self.findings), key=_STATES.index, default="ok")

    @property
    def as_warning(self) -> "Check":
        """The same check with every fault as a warning."""
        return replace(
            self, findings=tuple(replace(finding, state="warning") for finding in self.findings)
        )


def worst(checks: Iterable[Check]) -> State:
    """Return the worst state of some checks; `ok` if there is none."""
    return max((check.state for check in checks), key=_STATES.index, default="ok")


def as_json(checks: Sequence[Check]) -> dict[str, Any]:
    """Return all checks with all findings, as `--json` prints them."""
    rows = [
        {
            "check": check.name,
            "state": check.state,
            "summary": check.summary,
            "findings": [*map(asdict, check.findings)],
        }
        for check in checks
    ]
    return {"state": worst(checks), "checks": rows}


def screen(checks: Sequence[Check]) -> str:
    """Return the table of all checks, then a sentence for each kind of finding."""
    rows = [(check.name, check.state, check.summary) for check in checks]
    table = tabulate(rows, tablefmt="plain", disable_numparse=True)
    return "\n".join([table, *(line for check in checks for line in _sentences(check))])


def _sentences(check: Check) -> Iterator[str]:
    groups: dict[tuple[State, str], list[Finding]] = {}
    for finding in sorted(check.findings, key=lambda each: -_STATES.index(each.state)):
        groups.setdefault((finding.state, _remedy(finding.sentence)), []).append(finding)
    for group in list(groups.values())[:_SENTENCES]:
        yield f"\n{group[0].state}: {check.name}{_subjects(group)}\n    {printable_lines(group[0].sentence)}"
    left = [finding for group in list(groups.values())[_SENTENCES:] for finding in group]
    if left:
        yield f"\n{check.name}: {len(left)} more findings of other kinds; --json lists them all"


def _subjects(group: Sequence[Finding]) -> str:
    subjects = [finding.subject for finding in group if finding.subject]
    if not subjects:
        return ""
    if len(group) == 1:
        return f", {subjects[0]}"
    return f", {len(group)} alike: {first_few(subjects, _NAMED)}; the first:"


def _remedy(sentence: str) -> str:
    """Return a sentence's remedy without paths and numbers: equal for findings of one kind."""
    return re.sub(r"\S*[/\d]\S*", "", sentence.rpartition(";")[2])
