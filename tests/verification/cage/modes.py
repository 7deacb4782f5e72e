"""The cages that this machine offers."""

import functools

import pytest

from evaluation.errors import CageError
from evaluation.verification.cage.run import MODES, describe_cage


@functools.cache
def offered() -> tuple[str, ...]:
    found = []
    for mode in MODES:
        try:
            describe_cage(modes=[mode])
        except CageError:
            continue
        found.append(mode)
    return tuple(found)


needs_cage = pytest.mark.skipif(
    len(offered()) < len(MODES),
    reason=f"this machine offers {' and '.join(offered()) or 'no cage'} of {' and '.join(MODES)}",
)
