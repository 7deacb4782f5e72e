"""What runs inside a process of the pool: its imports, its limits, and one job at a time."""

import logging
import multiprocessing
import os
import resource
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from evaluation import children
from evaluation.settings.checks import Check
from evaluation.settings.verifiers import Verifier
from evaluation.verification import nltk_data
from evaluation.verification.registry import LIBRARIES, verify
from evaluation.verification.verdicts import Verdict

LIBRARIES_VARIABLE = "EVALUATION_VERIFIER_LIBRARIES"
"""Names, for `preload`, what it imports."""

OUT_OF_MEMORY = 77
"""Exit code of a process whose job took more memory than it may."""

_most_kilobytes = 0


def load(libraries: Iterable[str]) -> None:
    """Import libraries; one that is not installed fails in its jobs.

    Args:
        libraries: Keys of `registry.LIBRARIES`.
    """
    for name in libraries:
        with suppress(ImportError):
            LIBRARIES[name]()


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, whatever it is doing then."""
    children.end_with_parent()
    asker = multiprocessing.parent_process()
    if asker is not None and not asker.is_alive():  # it died before, and its server with it
        os._exit(1)


def prepare(memory_mb: int, nltk_folder: Path | None, libraries: Sequence[str]) -> None:
    """Tie the process to its parent's life and limit its memory, above what it begins with.

    Allocations fail at twice the limit. Since libraries take a failed one for a wrong answer, a job
    that has grown past the limit itself is given up (`verify_here`).

    Args:
        memory_mb: Limit of each job, in MB.
        nltk_folder: Folder that NLTK reads from alone; None for NLTK's own places.
        libraries: Keys of `registry.LIBRARIES`.
    """
    global _most_kilobytes
    logging.disable()  # libraries log the texts that they cannot read, as long as they are
    end_with_parent()
    if nltk_folder is not None:
        nltk_data.use(nltk_folder)
    load(libraries)
    _most_kilobytes = _peak_kilobytes() + memory_mb * 1024
    children.limit_memory(2 * memory_mb * 1024**2)


def verify_here(
    settings: Verifier | Check, document: Mapping[str, Any], completion: str
) -> Verdict:
    """Return the verdict of a job; end where memory is out, as nothing here can be trusted then.

    Args:
        settings: Settings of a verifier or of a probe's check.
        document: Fields of the prompt's document; checks read none.
        completion: Text of a model, cut at its stops.

    Returns:
        The verdict.
    """
    try:
        verdict = verify(settings, document, completion)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    if _peak_kilobytes() > _most_kilobytes:
        os._exit(OUT_OF_MEMORY)
    return verdict


def _peak_kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
