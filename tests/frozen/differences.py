"""What differs between two sets of numbers, by kind, but what a list of expected changes has."""

import fnmatch
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Numbers = Mapping[tuple[str, str], Any]
"""Value by kind and key."""

CANDIDATE = 1e-4
"""Largest difference of a candidate's log-probability, in nats; of a token's, a tenth of it."""
DIGITS, LEAST = 1e-6, 1e-7
"""Largest relative and absolute difference of a value: kernels add up in another order."""
SHOWN = 12


def are_equal(kind: str, before: Any, now: Any) -> bool:
    """Return whether two values are equal as their kind has it."""
    numbers = all(
        isinstance(value, float | int) and not isinstance(value, bool) for value in (before, now)
    )
    if kind == "exact" or not numbers:
        return type(before) is type(now) and bool(before == now)
    if kind == "candidate":
        return abs(before - now) <= CANDIDATE
    if kind == "distance":  # from plain passes: no farther than before
        return bool(now <= 1.05 * before + 1e-6)
    least = LEAST if kind == "value" else 1e-5  # a block's nats: 1e-5 a token, of ten at least
    return abs(before - now) <= max(least, DIGITS * abs(before))


def differences(before: Numbers, now: Numbers) -> dict[str, list[str]]:
    """Return lines on what differs, is missing or is new, by kind."""
    lines = defaultdict[str, list[str]](list)
    for (kind, key), value in before.items():
        if (kind, key) not in now:
            lines[f"{kind}: missing"].append(key)
        elif not are_equal(kind, value, now[kind, key]):
            lines[kind].append(f"{key}: {_short(value)} → {_short(now[kind, key])}")
    for kind, key in now.keys() - before.keys():
        lines[f"{kind}: new"].append(key)
    return lines


def largest(before: Numbers, now: Numbers, kind: str) -> float:
    """Return the largest difference of the numbers of a kind."""
    pairs = [
        (value, now[place]) for place, value in before.items() if place[0] == kind and place in now
    ]
    numbers = [(a, b) for a, b in pairs if isinstance(a, float) and isinstance(b, float)]
    return max((abs(a - b) for a, b in numbers), default=0.0)


def expected(path: Path | None) -> list[str]:
    """Return the patterns of a list of expected changes: `pattern  # reason`, one a line."""
    if path is None:
        return []
    patterns = []
    for line in path.read_text().splitlines():
        pattern, mark, reason = line.rpartition("  # ")
        if line.strip() and not (mark and pattern.strip() and reason.strip()):
            raise SystemExit(f"{path}: {line!r} is not `pattern  # reason`")
        patterns += [pattern.strip()] if mark else []
    return patterns


def unexpected(lines: Mapping[str, Sequence[str]], patterns: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines that no pattern of shells matches."""
    left = {
        kind: [
            text for text in of_kind if not any(fnmatch.fnmatchcase(text, one) for one in patterns)
        ]
        for kind, of_kind in lines.items()
    }
    return {kind: texts for kind, texts in left.items() if texts}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
