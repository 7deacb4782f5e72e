"""The two ends of the pipes between tester and candidate, which send questions and answers.

A message consists of its length, its kind, the random number of the question, and the body. The tester
draws a new number for every question, so an answer written in advance, or twice, is refused.
"""

import builtins
import contextlib
import importlib
import os
import select
import struct
import sys
from collections.abc import Callable
from typing import Any

from evaluation.verification.sandbox.decoder import MALFORMED, Decoder
from evaluation.verification.sandbox.encoder import Encoder, Refused, Table, deeply, sized

_MOST_BYTES = 128 << 20
_HEAD = struct.Struct("<Ic8s")
_NUMBER = struct.Struct("<I")
_ASK, _ANSWER, _RAISE, _UNSENT = b"?", b"=", b"!", b"~"
_MOST_TEXT = 2000
ENDED = "its process ended"
_UNREQUESTED = "it wrote to the tester without being asked"


class Broken(BaseException):
    """The other side has ended or sent a forbidden message; no test can continue."""


class Peer:
    """One end of the pipes between tester and candidate.

    Args:
        read: Descriptor of the other side's messages.
        write: Descriptor of this side's messages.
        perform: Takes a question of the other side, and returns the answer.
        remote: Makes the stand-in for an object of the other side, from this peer and the name.
        draws: Whether this side draws the numbers of questions; only the tester does.
    """

    def __init__(
        self,
        read: int,
        write: int,
        perform: Callable[[Any], Any],
        remote: Callable[["Peer", str], Any],
        *,
        draws: bool,
    ) -> None:
        self._read, self._write = read, write
        self._perform, self._remote, self._draws = perform, remote, draws
        self._ticket = bytes(8)
        self._objects: list[object] = []
        self._numbers: dict[int, int] = {}
        self._remotes: dict[int, Any] = {}
        self._remote_numbers: dict[int, int] = {}
        self._depth = 0
        self.broken = ""
        self.sent = ""
        """Describes the last object that this side sent and that is not plain data."""

    # Objects that cannot be sent

    def _refer(self, value: object) -> bytes:
        """Encode a reference to an object of either side: its owner, number, and name for messages."""
        if id(value) in self._remote_numbers:
            return b"H" + _NUMBER.pack(self._remote_numbers[id(value)]) + sized(b"")
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
            self.sent = f"they give it an object of type {type(value).__name__}"
        name = getattr(value, "__name__", None) or f"an object of type {type(value).__name__}"
        text = str(name)[:_MOST_TEXT].encode("utf-8", "replace")
        return b"h" + _NUMBER.pack(self._numbers[id(value)]) + sized(text)

    def _find(self, whose: bytes, number: int, name: str) -> Any:
        """Return an object of this side (`H`), or the stand-in for one of the other side (`h`)."""
        if whose == b"H":
            return self._objects[number]
        if number not in self._remotes:
            stand_in = self._remotes[number] = self._remote(self, name)
            self._remote_numbers[id(stand_in)] = number
        return self._remotes[number]

    # Messages

    def ask(self, question: Any) -> Any:
        """Ask the other side, and answer its questions until it answers.

        If the other side raises an exception, it is raised here.

        Args:
            question: The operation, the object, and the operation's arguments.

        Returns:
            The answer; if the call changed its arguments, they are changed here, too.

        Raises:
            Broken: When the other side has ended or sends an invalid answer.
        """
        if self.broken:
            raise Broken(self.broken)
        outermost, self._depth = self._depth == 0, self._depth + 1
        if outermost and self._draws:
            self._ticket = os.urandom(8)
        try:
            table = Table()
            self._send(_ASK, question, table)
            while True:
                kind, body = self._receive()
                if kind != _ASK:
                    return self._answer(kind, body, table)
                self._serve(body)
        except Broken as reason:
            self.broken = str(reason)
            raise
        finally:
            self._depth -= 1

    def serve_forever(self) -> None:
        """Answer questions until the other side ends.

        Raises:
            Broken: When it has ended, or sent something other than a question.
        """
        while True:
            kind, body = self._receive()
            if kind != _ASK:
                raise Broken("an answer to no question")
            self._serve(body)

    def check_silence(self) -> None:
        """Check that the other side has sent no further message.

        Raises:
            Broken: When the other side wrote without being asked.
        """
        if select.select([self._read], [], [], 0)[0] and os.read(self._read, 1):
            self.broken = _UNREQUESTED
            raise Broken(self.broken)

    def _answer(self, kind: bytes, body: bytes, table: Table) -> Any:
        try:
            known = list(table.values) if kind != _UNSENT else []
            with deeply():
                decoder = Decoder(body, table, self._find)
                answer = decoder.read()
                for value in known:
                    decoder.update(value)
        except MALFORMED as reason:
            raise Broken(f"its answer cannot be read: {reason}") from None
        if kind == _UNSENT:
            raise Broken(f"its answer cannot be taken: {answer}")
        if kind == _RAISE:
            raise _raised(*answer)
        return answer

    def _serve(self, body: bytes) -> None:
        table = Table()
        try:
            with deeply():
                question = Decoder(body, table, self._find).read()
        except MALFORMED as reason:
            raise Broken(f"its question cannot be read: {reason}") from None
        known = len(table.values)
        try:
            kind, answer = _ANSWER, self._perform(question)
        except Broken:
            raise
        except BaseException as reason:  # noqa: BLE001 - foreign code may raise anything
            kind, answer = _RAISE, _as_data(reason)
        try:
            self._send(kind, answer, table, known)
        except MALFORMED as reason:
            text = str(reason) or type(reason).__name__
            self._send(_UNSENT, text[:_MOST_TEXT], table, 0)

    def _send(self, kind: bytes, value: Any, table: Table, known: int = 0) -> None:
        """Send a value, and the present contents of the first `known` values of the table."""
        encoder = Encoder(table, self._refer)
        with deeply():
            encoder.write(value)
            for changed in table.values[:known]:
                encoder.write_contents(changed, type(changed))
        if len(encoder.data) > _MOST_BYTES:
            raise Refused(f"it is larger than {_MOST_BYTES >> 20} MB")
        data = memoryview(_HEAD.pack(len(encoder.data), kind, self._ticket) + encoder.data)
        try:
            while data:
                data = data[os.write(self._write, data) :]
        except BrokenPipeError:
            raise Broken(ENDED) from None

    def _receive(self) -> tuple[bytes, bytes]:
        length, kind, ticket = _HEAD.unpack(self._read_exactly(_HEAD.size))
        if length > _MOST_BYTES:
            raise Broken(f"its message is larger than {_MOST_BYTES >> 20} MB")
        if self._draws and ticket != self._ticket:
            raise Broken(_UNREQUESTED)
        self._ticket = ticket
        return kind, self._read_exactly(length)

    def _read_exactly(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            part = os.read(self._read, min(length - len(parts), 1 << 20))
            if not part:
                raise Broken(ENDED)
            parts += part
        return bytes(parts)


def _as_data(reason: BaseException) -> tuple[str, Any, str, str]:
    """Return an exception as data: nearest built-in type, arguments, actual type and its module."""
    kind = type(reason)
    kinds = (base.__name__ for base in kind.__mro__ if base.__module__ == "builtins")
    plain = all(type(part) in (int, float, str, bytes, bool) for part in reason.args)
    arguments = reason.args if plain else (str(reason),)
    return next(kinds), arguments, kind.__name__, kind.__module__


def _raised(name: str, arguments: Any, own_name: str, home: str) -> BaseException:
    """Return the exception that `_as_data` describes, or the nearest; Broken if it is no Exception."""
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return Broken(f"it ends by {str(name)[:100]}")
    reason = _made(kind, tuple(arguments))
    if str(home).partition(".")[0] in sys.stdlib_module_names:
        with contextlib.suppress(Exception):  # the module may not exist on this system
            standard = getattr(importlib.import_module(home), own_name)
            if issubclass(standard, kind):
                reason = standard.__new__(standard, *arguments)  # skips its constructor
    reason.__dict__["of_the_program"] = str(own_name)[:100]
    return reason


def _made(kind: type[Exception], arguments: tuple[Any, ...]) -> Exception:
    try:
        return kind(*arguments)
    except TypeError:  # it takes other arguments
        return kind.__new__(kind, *arguments)
