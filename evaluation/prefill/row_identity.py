"""Which rows are the same, whatever their split, file, mirror or task is called.

A row has two identities: `question`, of the question as it is rendered, and `row`, of the fields that
it was read from. Questions that share one of them rest on one source row: two templates over the
same row share the second, and the same question in two files shares the first. Solved examples,
repeated questions and questions that tasks share are all recognised by these (`metrics.layout.joined`).
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from evaluation.files import fingerprint


def question_identity(contexts: Collection[str], candidates: Collection[str] = ()) -> str:
    """Return the identity of a rendered question.

    The order of candidates does not matter, nor how much white space there is.

    Args:
        contexts: What a model reads before each candidate, without description and solved examples.
        candidates: The candidates to be ranked; none for a question that is answered freely.
    """
    parts = (sorted({" ".join(text.split()) for text in texts}) for texts in (contexts, candidates))
    return fingerprint(list(parts))


def row_identity(row: Mapping[str, Any]) -> str:
    """Return the identity of a row's fields; an absent field is the same as a null."""
    content = {str(name): value for name, value in row.items() if value is not None}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return fingerprint(text)
