"""The pipes between tester and program: the tester asks, the program answers, and nothing else is sent.

A message is its length and a list of plain data. Its first item is the question's random number, which
the answer repeats: an answer that was written in advance, or twice, is refused.
"""

import contextlib
import os
import select
import struct
import sys
from collections.abc import Iterator
from typing import Any

from evaluation.verification.sandbox.plain_data import MOST_BYTES, of_bytes, to_bytes

_LENGTH = struct.Struct("<Q")
_MOST_FRAMES = 50_000
"""Frames that reading or writing a nested value may take, some four for each level."""
ENDED = "its process ended"
_UNREQUESTED = "it wrote to the tester without being asked"


class Broken(BaseException):
    """The other side has ended or sent something forbidden; tests cannot catch and ignore it."""


class Channel:
    """One end of the pipes."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._receive, self._send = os.read, os.write  # a program may replace those of `os`

    def ask(self, question: list[Any]) -> list[Any]:
        """Send a question, and return its answer.

        Raises:
            NotPlainData: When the question is too large.
            Broken: When the other side has ended, or its answer is none to this question.
        """
        number = os.urandom(8).hex()
        self.send([number, *question])
        answer = self.receive()
        if not isinstance(answer, list) or answer[:1] != [number]:
            raise Broken(_UNREQUESTED)
        return answer[1:]

    def send(self, message: list[Any]) -> None:
        """Send a message; raise NotPlainData if it is too large, Broken if the other side has ended."""
        body = to_bytes(message)
        data = memoryview(_LENGTH.pack(len(body)) + body)
        try:
            while data:
                data = data[self._send(self._write, data) :]
        except BrokenPipeError:
            raise Broken(ENDED) from None

    def receive(self) -> Any:
        """Return the other side's next message, of any plain type.

        Raises:
            Broken: When the other side has ended, or the message cannot be read.
        """
        length = _LENGTH.unpack(self._exactly(_LENGTH.size))[0]
        if length > MOST_BYTES:
            raise Broken(f"its message is larger than {MOST_BYTES >> 20} MB")
        try:
            return of_bytes(self._exactly(length))
        except Exception as reason:  # noqa: BLE001 - a message may be forged in any way
            raise Broken(f"its message cannot be read: {type(reason).__name__}") from None

    def check_silence(self) -> None:
        """Raise Broken if the other side has sent something without being asked."""
        if select.select([self._read], [], [], 0)[0] and self._receive(self._read, 1):
            raise Broken(_UNREQUESTED)

    def _exactly(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            part = self._receive(self._read, min(length - len(parts), 1 << 20))
            if not part:
                raise Broken(ENDED)
            parts += part
        return bytes(parts)


@contextlib.contextmanager
def deeply() -> Iterator[None]:
    """Raise Python's recursion limit while nested values are written."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _MOST_FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
