"""Where the rows of Nanotron's tensors go in a model of transformers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A parameter of a transformers model and the rows of a Nanotron tensor that it takes."""

    name: str
    start: int
    stop: int
    interleaved_head: int | None = None
    """Head size, if rows are reordered from adjacent pairs to half-split; otherwise None.

    Interleaved RoPE rotates the rows 2j and 2j + 1 of a head of q or k together; transformers rotates
    j together with j + d/2.
    """
    divisor: float = 1.0
    transposed: bool = False
    """Whether the last two dimensions are swapped."""
    offset: int = 0
    """The parameter's row that takes the first of these rows."""


@dataclass(frozen=True)
class TensorSource:
    """A Nanotron tensor's whole shape and the targets of its rows, which together take all of them."""

    shape: tuple[int, ...]
    targets: tuple[Target, ...]


def whole_tensor(name: str, shape: tuple[int, ...], *, transposed: bool = False) -> TensorSource:
    """Return a tensor that one parameter takes as a whole."""
    return TensorSource(shape, (Target(name, 0, shape[0], transposed=transposed),))
