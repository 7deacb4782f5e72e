"""What the judge's tests hold in place of a program's function or object.

All that gives data is asked of the program: calls, attributes, items, length, text. Where it would
be compared with data of the tests, the program would learn what is expected and be the one who
compares: that is refused, but where the tests are about objects (`wording.py`). What rests on the
program's own word is counted.
"""

from typing import Any, NoReturn

from evaluation.verification.sandbox.peer import Broken, Peer
from evaluation.verification.sandbox.reasons import gave, short


class Log:
    """What was asked of the program, and the last of it for the reason."""

    def __init__(self, about_objects: bool) -> None:
        self.about_objects = about_objects
        self.questions = self.words = 0
        self._last: tuple[str, tuple[Any, ...], Any] | None = None

    def add(self, name: str, arguments: tuple[Any, ...], answer: Any) -> None:
        self._last = (name, arguments, answer)

    def last_answer(self) -> str:
        if self._last is None:
            return ""
        name, arguments, answer = self._last
        return gave(name, ", ".join(map(_shown, arguments)), _shown(answer))


def _shown(value: object) -> str:
    """Show an object of the program's without asking it anything."""
    return "an object of its own" if type(value) is StandIn else short(value)


class StandIn:
    __slots__ = ("__log", "__name", "__peer")

    def __init__(self, peer: Peer, name: str, log: Log) -> None:
        for field, value in (("peer", peer), ("name", name), ("log", log)):
            object.__setattr__(self, f"_StandIn__{field}", value)

    def __ask(self, what: str, *rest: Any) -> Any:
        self.__log.questions += 1
        return self.__peer.ask((what, self, *rest))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        answer = self.__ask("call", arguments, named)
        self.__log.add(self.__name, arguments, answer)
        return answer

    def __getattr__(self, name: str) -> Any:
        return self.__ask("get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__ask("set", name, value)

    def __contains__(self, value: Any) -> bool:
        if self.__log.about_objects:
            return self.__word("contains", value) is True
        return any(item == value for item in self.__ask("iterate"))

    def __bool__(self) -> bool:
        return self.__ask("truth") is True

    def __word(self, what: str, other: object) -> Any:
        """The program's own word on how its object compares with another."""
        is_allowed = self.__log.about_objects or isinstance(other, StandIn)
        if not is_allowed and what.removeprefix("r") in _TELLING:
            self.__refuse()
        self.__log.words += 1
        return self.__ask(what, other)

    def __copy__(self) -> Any:
        return self.__ask("copy")

    def __deepcopy__(self, _: object) -> Any:
        return self.__ask("deepcopy")

    def __refuse(self) -> NoReturn:
        self.__peer.broken = f"it gave {self.__name}, where the tests compare data"
        raise Broken(self.__peer.broken)


def _asking(what: str) -> Any:
    return lambda self, *rest: self._StandIn__ask(what, *rest)


def _comparing(what: str) -> Any:
    return lambda self, other: self._StandIn__word(what, other)


ASKED = {
    "__getitem__": "item",
    "__setitem__": "set_item",
    "__delitem__": "delete_item",
    "__iter__": "iterate",
    "__next__": "next",
    "__reversed__": "reversed",
    "__len__": "length",
    "__str__": "text",
    "__repr__": "representation",
    "__format__": "format",
    "__hash__": "hash",
    "__int__": "int",
    "__float__": "float",
    "__index__": "index",
    "__round__": "round",
    "__neg__": "neg",
    "__pos__": "pos",
    "__abs__": "abs",
    "__invert__": "invert",
    "__enter__": "enter",
    "__exit__": "exit",
}
COMPARED = "eq ne lt le gt ge".split()
_TELLING = {*COMPARED, "contains", "sub", "truediv", "xor"}
"""What tests do with an expected value: `abs(f(3) - 4) < 1e-9`."""
CALCULATED = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift".split()

for _name, _what in ASKED.items():
    setattr(StandIn, _name, _asking(_what))
for _name in COMPARED:
    setattr(StandIn, f"__{_name}__", _comparing(_name))
for _name in CALCULATED:
    setattr(StandIn, f"__{_name.strip('_')}__", _comparing(_name))
    setattr(StandIn, f"__r{_name.strip('_')}__", _comparing(f"r{_name}"))
for _name, _what in {"instance": "is_instance", "subclass": "is_subclass"}.items():
    setattr(StandIn, f"__{_name}check__", _comparing(_what))
