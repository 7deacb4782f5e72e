"""Read a step's number from a folder's name; this file imports only the standard library."""

import re
from pathlib import Path

STEP = re.compile(r"0|[1-9][0-9]{0,18}")
"""Pattern of a folder's name that is a step's number; `step_named` refuses those above 2^63 - 1."""

_WORDS = "global_?steps?|steps?|iterations?|iters?|checkpoints?|ckpts?"
_NAMED = re.compile(rf"(?:.*[-_.])?(?:{_WORDS})[-_=.]?0*({STEP.pattern})", re.IGNORECASE)
"""Pattern of names such as `step10`, `run_step20`, `iter_0000010` and `checkpoint-500`."""


def step_named(folder: str) -> int | None:
    """Return the step that the name of a folder of checkpoints states; None for any other name."""
    step = int(folder) if STEP.fullmatch(folder) else None
    return step if step is not None and step < 2**63 else None


def step_of_folder(folder: str) -> int | None:
    """Return the step of a folder called by a number, or as other trainers call theirs; else None."""
    named = _NAMED.fullmatch(folder)
    return step_named(named[1] if named else folder)


def results_folder(step: int) -> str:
    return f"step_{step}"


def step_of_results(folder: Path) -> int:
    return int(folder.name.removeprefix("step_"))
