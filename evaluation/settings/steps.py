"""Read a step's number from a folder's name; this file imports only the standard library."""

import re

STEP = re.compile(r"0|[1-9][0-9]{0,18}")
"""Pattern of a folder's name that is a step's number; `step_named` refuses those above 2⁶³ - 1."""


def step_named(folder: str) -> int | None:
    """Return the step that a folder's name states.

    Args:
        folder: Name of a folder of checkpoints, without its path.

    Returns:
        The step's number; None for any other name.
    """
    step = int(folder) if STEP.fullmatch(folder) else None
    return step if step is not None and step < 2**63 else None
