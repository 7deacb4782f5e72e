"""Progress bars, which are rare lines where stderr is a log file."""

import sys
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm


def progress(what: str | None, total: int, unit: str, *, delay: float = 0.0) -> "tqdm[Any]":
    """Return a progress bar on stderr with rate and remaining time; rare lines where it is a log file.

    It is not shown for what ends within `delay` seconds, nor where `what` is None.
    """
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
    """Move a bar on by answers of so many tokens each, and show the tokens per second so far."""
    bar.tokens = getattr(bar, "tokens", 0) + sum(tokens)
    seconds = max(bar.format_dict["elapsed"], 1e-3)
    bar.set_postfix_str(f"{bar.tokens / seconds:.0f}tok/s", refresh=False)
    bar.update(len(tokens))
