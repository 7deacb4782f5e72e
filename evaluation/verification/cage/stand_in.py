"""What the judge's tests hold in place of a program's function or object.

It can be called, read, iterated over and asked for its length, truth and text: all that gives data.
It cannot be compared: the program would learn what is expected, and would be the one who compares.
"""

import reprlib
from types import FunctionType
from typing import Any, NoReturn

from evaluation.verification.cage.peer import Broken, Peer

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 120
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxdict = 8


def short(value: object) -> str:
    """A value in at most some 300 characters, whatever it is."""
    if type(value) is int and abs(value).bit_length() > 400:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, FunctionType):
        return f"<{value.__name__}>"
    try:
        text = _SHORT.repr(value)
    except (Exception, Broken):  # noqa: BLE001 - integers inside with too many digits, and the like
        return f"a {type(value).__name__}"
    return text if len(text) <= 300 else text[:299] + "…"


class Log:
    """The last thing that was asked of the program, and what came back, for the reason."""

    def __init__(self) -> None:
        self.questions = 0
        self._last: tuple[str, tuple[Any, ...], Any] | None = None

    def add(self, name: str, arguments: tuple[Any, ...], answer: Any) -> None:
        self._last = (name, arguments, answer)

    def told(self) -> str:
        if self._last is None:
            return ""
        name, arguments, answer = self._last
        inside = ", ".join(map(short, arguments))
        inside = inside if len(inside) <= 200 else inside[:199] + "…"
        return f"{name[:80]}({inside}) gave {short(answer)}"


class StandIn:
    __slots__ = ("_log", "_name", "_peer")

    def __init__(self, peer: Peer, name: str, log: Log) -> None:
        for field, value in (("_peer", peer), ("_name", name), ("_log", log)):
            object.__setattr__(self, field, value)

    def _ask(self, what: str, *rest: Any) -> Any:
        self._log.questions += 1
        return self._peer.ask((what, self, *rest))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        answer = self._ask("call", arguments, named)
        self._log.add(self._name, arguments, answer)
        return answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._ask("get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("set", name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._ask("item", key)

    def __iter__(self) -> Any:
        return self._ask("iterate")

    def __next__(self) -> Any:
        return self._ask("next")

    def __len__(self) -> int:
        return int(self._ask("length"))

    def __bool__(self) -> bool:
        return self._ask("truth") is True

    def __str__(self) -> str:
        return str(self._ask("text"))

    def __repr__(self) -> str:
        return f"<{self._name}>"

    def __contains__(self, value: Any) -> bool:
        return any(item == value for item in self)

    def _refuse(self, _: object = None) -> NoReturn:
        self._peer.broken = f"it gave {self._name}, where the tests compare data"
        raise Broken(self._peer.broken)

    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __eq__(self, other: object) -> bool:
        return self._refuse()

    def __ne__(self, other: object) -> bool:
        return self._refuse()

    __hash__ = object.__hash__
