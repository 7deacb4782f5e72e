"""The shapes that forward passes on a GPU are padded to: few, for each is compiled once.

    tries    1 row of a quarter of the row budget, of all of it, or of a power of two times as much
    text     as many blocks as the row budget holds, each padded to whole blocks of attention

So a job compiles two shapes for its tasks and one for each length of its text; a task's last row,
and a text's last pass, are padded.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evaluation.scoring.engine.masks import BLOCK


class Shape(NamedTuple):
    """Rows of a forward pass, and tokens of each."""

    rows: int
    length: int


def padded(tokens: int) -> int:
    """Tokens rounded up to whole blocks of attention."""
    return -(-tokens // BLOCK) * BLOCK


def shape_of(length: int, row_tokens: int, *, is_text: bool) -> Shape:
    """What a row of `length` tokens is padded to under a budget of `row_tokens`."""
    if is_text:
        block = padded(length)
        return Shape(max(1, row_tokens // block), block)
    full = padded(row_tokens)
    quarter = padded(full // 4)
    if length <= quarter:
        return Shape(1, quarter)
    while full < length:
        full *= 2
    return Shape(1, full)


def group_shapes(
    lengths: Sequence[int], row_tokens: int, *, is_text: bool
) -> Iterator[tuple[list[int], Shape]]:
    """Indices of rows that run together and the shape they are padded to, the longest first."""
    group: list[int] = []
    shape: Shape | None = None
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        own = shape_of(lengths[index], row_tokens, is_text=is_text)
        if shape and (own != shape or len(group) == shape.rows):
            yield group, shape
            group = []
        shape = own
        group.append(index)
    if shape:
        yield group, shape
