"""Which rows are the same, whatever their split, file, mirror or task is called.

A row has two identities: `question`, of the question as it is rendered, and `row`, of the fields that
it was read from. Questions that share one of them rest on one source row: two templates over the
same row share the second, and the same question in two files shares the first. Solved examples,
repeated questions and questions that tasks share are all recognised by these functions.
"""

import json
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

from evaluation.fingerprints import fingerprint


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


def source_rows(identities: Sequence[Collection[Hashable | None]]) -> list[int]:
    """Number the source rows of questions: those that share an identity, also indirectly, are one.

    Args:
        identities: The identities of each question, of any tasks; None is no identity.
    """
    parents = list(range(len(identities)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    first: dict[Hashable, int] = {}
    for number, keys in enumerate(identities):
        for key in keys:
            if key is not None:
                left, right = sorted((root(number), root(first.setdefault(key, number))))
                parents[right] = left
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root(number), len(numbers)) for number in range(len(parents))]
