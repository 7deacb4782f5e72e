"""Write all that vLLM prints into the job's log, and find the error in it that came first.

vLLM's processes print tracebacks of several processes as one brings down the others, then advice and
warnings while they shut down. The first traceback is the cause.
"""

import logging

log = logging.getLogger(__name__)

_BEGIN = "Traceback (most recent call last):"


class Output:
    """Takes a program's lines in their order; `error` is the last line of the first traceback in them."""

    def __init__(self) -> None:
        self.error: str | None = None
        self._margin: str | None = None  # what a traceback's lines begin with, such as a process

    def __call__(self, line: str) -> None:
        """Log a line."""
        if line.strip():
            log.info("vLLM: %s", line)
        if self._margin is None:
            margin, begin, _ = line.partition(_BEGIN)
            self._margin = margin if begin else None
        elif self.error is None and line.startswith(self._margin):
            text = line[len(self._margin) :]
            if text.strip() and not text[0].isspace():
                self.error = text.strip()
