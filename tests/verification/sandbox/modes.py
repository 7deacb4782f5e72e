"""The sandboxes that this machine offers."""

import functools

import pytest

from evaluation.errors import SandboxError
from evaluation.verification.sandbox.run import MODES, describe_sandbox


@functools.cache
def offered() -> tuple[str, ...]:
    found = []
    for mode in MODES:
        try:
            describe_sandbox(modes=[mode])
        except SandboxError:
            continue
        found.append(mode)
    return tuple(found)


needs_sandbox = pytest.mark.skipif(
    len(offered()) < len(MODES),
    reason=f"this machine offers {' and '.join(offered()) or 'no sandbox'} of {' and '.join(MODES)}",
)
