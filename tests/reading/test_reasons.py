"""Reasons behind a statement are left out, as by one regular expression that takes too long."""

import random
import re

from evaluation.reading.number_statements import _without_reason

PLAIN = re.compile(
    r"(\d[^:=\n]*\b(?:is|are|needed|required)\b[^\d:=\n]*)(?::|,? because\b|,? since\b).*",
    re.DOTALL,
)
WORDS = [
    *("7", "12", "٣", " is", " are", " needed", "required", " becaused", " because1", " buses"),
    *(": ", ":", "=", ", because", " because", " since", ", since", "\n", ".", ","),
]


def test_random_sentences() -> None:
    draw, shortened = random.Random(1), 0
    for _ in range(20_000):
        sentence = "".join(draw.choices(WORDS, k=draw.randrange(1, 16)))
        expected = PLAIN.sub(r"\1", sentence)
        assert _without_reason(sentence) == expected, sentence
        shortened += expected != sentence
    assert shortened > 1000


def test_a_table_of_many_cells_is_read() -> None:
    table = "".join(f"| {number} is {number + 1} " for number in range(20_000))
    assert _without_reason(f"{table}is so: as said") == f"{table}is so"
