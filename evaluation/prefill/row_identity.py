"""Which rows are the same, whatever their split, file or task is called, and whether a split is sorted.

A row has two identities: `question`, of the question as it is rendered, and `row`, of the fields that
it was read from. Questions that share one of them rest on one source row. Solved examples, repeated
questions and questions that tasks share are all recognised by these (`metrics.layout.joined`).
"""

import json
import logging
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from evaluation.errors import first_few
from evaluation.files import fingerprint

log = logging.getLogger(__name__)

_EXPECTED = 10
"""Rows of a label that would be expected among those used, from which on it is told that there is none."""


def question_identity(contexts: Collection[str], candidates: Collection[str] = ()) -> str:
    """Return the identity of a rendered question, whatever the order of candidates and its white space.

    Contexts are without description and solved examples; there are candidates where they are ranked.
    """
    parts = (sorted({" ".join(text.split()) for text in texts}) for texts in (contexts, candidates))
    return fingerprint(list(parts))


def row_identity(row: Mapping[str, Any]) -> str:
    """Return the identity of a row's fields; an absent field is the same as a null."""
    content = {str(name): value for name, value in row.items() if value is not None}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return fingerprint(text)


def warn_of_sorted(place: str, used: Counter[str], others: Counter[str]) -> None:
    """Warn where rows beyond the limit have labels that none of the used ones has: the split is sorted."""
    total = used.total() + others.total()
    expected = {label: n * used.total() / total for label, n in others.items() if label not in used}
    absent = [label for label, number in expected.items() if label and number >= _EXPECTED]
    if absent:
        log.warning(
            "%s: none of the first %d of %d rows has %s, so the split seems to be sorted; raise `limit`, or "
            "name a shuffled copy under `files`",
            *(place, used.total(), total, first_few(sorted(absent))),
        )
