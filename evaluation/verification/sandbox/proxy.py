"""Stands in the tester's tests for a function or object of the program.

Operations that return data are forwarded to the program: calls, attributes, items, length, text.
Comparing an object of the program with data of the tests would reveal the expected value to the
program and let it decide the comparison. So this is refused, unless the tests are about objects
(`static_analysis.py`). Comparisons that the program decides are counted.
"""

import copy
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from evaluation.verification.sandbox.peer import Broken, Peer
from evaluation.verification.sandbox.reasons import gave, short


@dataclass
class Log:
    """Counts the questions to the program and the comparisons that it decided; keeps the last call.

    `about_objects` is whether the tests are about objects, not only about data.
    """

    about_objects: bool
    questions: int = 0
    words: int = 0
    last: tuple[str, tuple[Any, ...], Any] | None = None

    @property
    def last_answer(self) -> str:
        """A sentence about the last call, such as `f(3) gave 4`; empty if there was none."""
        if self.last is None:
            return ""
        name, arguments, answer = self.last
        return gave(name, ", ".join(map(_shown, arguments)), _shown(answer))


def _shown(value: object) -> str:
    """Return a value as text, without sending questions about an object of the program."""
    return "an object of its own" if type(value) is Proxy else short(value)


class Proxy:
    __slots__ = ("__log", "__name", "__peer")

    def __init__(self, peer: Peer, name: str, log: Log) -> None:
        for field, value in (("peer", peer), ("name", name), ("log", log)):
            object.__setattr__(self, f"_Proxy__{field}", value)

    def __ask(self, what: str, *rest: Any) -> Any:
        self.__log.questions += 1
        return self.__peer.ask((what, self, *rest))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        answer = self.__ask("call", arguments, named)
        self.__log.last = (self.__name, arguments, answer)
        return answer

    def __getattr__(self, name: str) -> Any:
        return self.__ask("get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__ask("set", name, value)

    def __contains__(self, value: Any) -> bool:
        if self.__log.about_objects:
            return self.__word("contains", value) is True
        return any(item == value for item in self.__ask("__iter__"))

    def __bool__(self) -> bool:
        return self.__ask("truth") is True

    def __word(self, what: str, other: object) -> Any:
        """Return the program's result for an operation of its object with another value."""
        is_allowed = self.__log.about_objects or isinstance(other, Proxy)
        if not is_allowed and what in _REVEALING:
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
    return lambda self, *rest: self._Proxy__ask(what, *rest)


def _comparing(what: str) -> Any:
    return lambda self, other: self._Proxy__word(what, other)


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda target, other: function(other, target)


def _of_operator(names: str, form: str = "__{}__") -> dict[str, Callable[..., Any]]:
    return {form.format(name.strip("_")): getattr(operator, name) for name in names.split()}


_ASKED: dict[str, Callable[..., Any]] = {
    "__iter__": iter,
    "__next__": next,
    "__reversed__": reversed,
    "__len__": len,
    "__str__": str,
    "__repr__": repr,
    "__format__": format,
    "__hash__": hash,
    "__int__": int,
    "__float__": float,
    "__round__": round,
    "__enter__": lambda target: type(target).__enter__(target),
    "__exit__": lambda target, *reason: type(target).__exit__(target, *reason),
    **_of_operator("getitem setitem delitem index neg pos abs invert"),
}
_COMPARED = _of_operator("eq ne lt le gt ge")
_CALCULATED = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift"
_WITH_ANOTHER: dict[str, Callable[..., Any]] = {
    **_COMPARED,
    **_of_operator(_CALCULATED),
    **{n: _reflected(f) for n, f in _of_operator(_CALCULATED, "__r{}__").items()},
    "__instancecheck__": _reflected(isinstance),
    "__subclasscheck__": _reflected(issubclass),
}
_REVEALING = {
    *(*_COMPARED, "contains", "__sub__", "__rsub__"),
    *("__truediv__", "__rtruediv__", "__xor__", "__rxor__"),
}
"""Operations that would reveal an expected value, as in `abs(f(3) - 4) < 1e-9`."""

OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda target, arguments, named: target(*arguments, **named),
    "get": getattr,
    "set": setattr,
    "truth": bool,
    "contains": operator.contains,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **_ASKED,
    **_WITH_ANOTHER,
}
"""Operations that the program's process does with its object, by the tester's question."""

for _name in _ASKED:
    setattr(Proxy, _name, _asking(_name))
for _name in _WITH_ANOTHER:
    setattr(Proxy, _name, _comparing(_name))
