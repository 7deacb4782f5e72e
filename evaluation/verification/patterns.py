"""Verifier of the kind `pattern`: a regular expression finds the answer, as GSM8K's `#### 18`."""

import re
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from evaluation.settings.verifiers import Pattern
from evaluation.verification.verdicts import Verdict, VerifierKind, different

_compiled = lru_cache(maxsize=256)(re.compile)


def _verify(settings: Pattern, document: Mapping[str, Any], completion: str) -> Verdict:
    """Verify that the text found by the pattern equals the gold answer, without ignored parts."""
    answer = _found(settings, completion)
    if answer is None:
        return Verdict(credit=0.0, reason=f"nothing matches {settings.pattern}")
    gold = str(document["gold"])
    if bare(settings, answer) == bare(settings, gold):
        return Verdict(credit=1.0, answer=answer)
    return Verdict(credit=0.0, answer=answer, reason=different(answer, bare(settings, gold)))


def _in_form(settings: Pattern, document: Mapping[str, Any]) -> str:
    return settings.form.replace("{gold}", str(document["gold"]))


def _found(settings: Pattern, completion: str) -> str | None:
    """Return the first group of the first or last match that matched and is not empty."""
    matches = _compiled(settings.pattern).finditer(completion)
    first = islice(matches, 1) if settings.take == "first" else matches
    match = next(iter(deque(first, maxlen=1)), None)
    if match is None:
        return None
    groups = match.groups() if match.re.groups else (match.group(),)
    return next((group.strip() for group in groups if group), None)


def bare(settings: Pattern, text: str) -> str:
    """Return the text that is compared: an answer without its ignored parts, or without case."""
    for ignored in settings.ignore:
        text = _compiled(ignored).sub("", text)
    return text.lower() if settings.ignore_case else text


PATTERN = VerifierKind(_verify, _in_form, bare=bare)
