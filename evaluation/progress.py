"""Progress bars; if stderr is a log file, a line every ten seconds instead."""

import sys
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm


def progress(what: str | None, total: int, unit: str, *, delay: float = 0.0) -> "tqdm[Any]":
    """Return a progress bar on stderr, shown after `delay` seconds; None as its text: no bar."""
    interval = 0.5 if sys.stderr.isatty() else 10.0
    return tqdm(
        desc=what,
        total=total,
        unit=unit,
        unit_scale=True,
        mininterval=interval,
        delay=delay,
        disable=what is None,
        file=sys.stderr,
    )


def count_answers(bar: Any, tokens: Sequence[int]) -> None:
    """Advance a bar, whose unit is an answer, by answers' tokens; show the tokens per second so far."""
    bar.tokens = getattr(bar, "tokens", 0) + sum(tokens)
    seconds = max(bar.format_dict["elapsed"], 1e-3)
    bar.set_postfix_str(f"{bar.tokens / seconds:.0f}tok/s", refresh=False)
    bar.update(len(tokens))
