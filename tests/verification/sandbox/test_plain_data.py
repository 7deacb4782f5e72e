"""What is sent arrives, or is refused; bytes of any other kind harm nobody."""

import math
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.verification.sandbox.channel import deeply
from evaluation.verification.sandbox.plain_data import (
    NotPlainData,
    Writer,
    of_bytes,
    read_values,
    to_bytes,
    value_of,
)
from tests.conftest import ROOT


def _write(value: Any) -> bytes:
    writer = Writer()
    with deeply():
        cell = writer.cell(value)
    return to_bytes([writer.nodes, cell])


def _read(data: bytes) -> Any:
    nodes, cell = of_bytes(data)
    return value_of(cell, read_values(nodes))


_HASHABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
_DATA = st.recursive(
    _HASHABLE | st.complex_numbers(allow_nan=False) | st.characters(categories=["Cs"]),
    lambda inner: (
        st.lists(inner) | st.dictionaries(_HASHABLE, inner) | st.sets(_HASHABLE) | st.tuples(inner)
    ),
)


@settings(max_examples=40)
@given(_DATA)
def test_data_arrive_as_they_are(value: Any) -> None:
    arrived = _read(_write(value))
    assert arrived == value
    assert repr(arrived) == repr(value) or isinstance(value, set | frozenset | dict | list | tuple)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6.0).reshape(2, 3),
        np.array([["a", "bc"]]),
        np.zeros((0, 3), np.int8),
        np.array(5),
        np.array([1j, 2], np.complex64),
        np.arange(4)[::2],
        *(np.float32(0.1), np.int64(3), np.bool_(True), np.str_("a"), np.float64("inf")),
    ],
)
def test_values_of_numpy_arrive_as_they_are(value: Any) -> None:
    arrived = _read(_write(value))
    assert type(arrived) is type(value)
    assert (arrived.dtype, arrived.shape) == (value.dtype, value.shape)
    assert np.array_equal(arrived, value)
    if isinstance(arrived, np.ndarray):
        arrived[...] = arrived  # can be written to


def test_special_values() -> None:
    assert math.isnan(_read(_write(math.nan)))
    assert math.copysign(1, _read(_write(-0.0))) == -1
    assert _read(_write(-(2**100_000))) == -(2**100_000)
    assert _read(_write("\ud83d\ude00 \ud800\0")) == "\ud83d\ude00 \ud800\0"
    mixed = [*range(100), True, 2**80, 1.5, -(2**63), 2**63 - 1, None]
    assert list(map(type, _read(_write(mixed)))) == list(map(type, mixed))
    assert list(_read(_write({3: 0, 1: 0, 2: 0}))) == [3, 1, 2]


def test_one_object_stays_one_and_may_hold_itself() -> None:
    inner: list[Any] = [1]
    outer = [inner, inner, {"again": inner}]
    outer.append(outer)
    arrived = _read(_write(outer))
    assert arrived[0] is arrived[1] is arrived[2]["again"]
    assert arrived[3] is arrived


def test_a_value_that_doubles_is_written_once() -> None:
    value: tuple[Any, ...] = ()
    for _ in range(1000):
        value = (value, value)
    assert len(_write(value)) < 100_000


def test_what_is_no_data_is_refused() -> None:
    class Equal(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    refused = (object(), len, int, math, Equal(3), ValueError(), np.array([object()]))
    for value in (*refused, np.zeros(2, [("a", int)]), iter(int, 1)):
        with pytest.raises(NotPlainData):
            _write([value])


def test_deep_values_arrive() -> None:
    """In a process of its own: once torch has compiled something in one, its calls are deep in C."""
    script = "from tests.verification.sandbox.test_plain_data import check_depth; check_depth()"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=100)


def check_depth() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    arrived = _read(_write(deep))
    for _ in range(5000):
        (arrived,) = arrived
    assert arrived == []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        _write(deep)


@given(st.binary())
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    _read_or_refuse(data)


@settings(max_examples=40)
@given(_DATA, st.randoms(use_true_random=False))
def test_damaged_bytes_are_refused_or_plain(value: Any, generator: random.Random) -> None:
    data = bytearray(_write(value))
    data[generator.randrange(len(data))] = generator.randrange(256)
    _read_or_refuse(bytes(data[: generator.randrange(len(data)) + 1]))
    _read_or_refuse(bytes(data))


@pytest.mark.parametrize(
    "message",
    [
        '[[["list", {"a": 1}]], [0]]',
        '[[["tuple", [1]], ["list"]], [0]]',
        '[[["object"]], [0]]',
        '[[["numpy array", "O8", "00000000", 1]], [0]]',
        '[[["set", [1]], ["list"]], [0]]',
        '[[["dict", 1]], [0]]',
        "[[null], [0]]",
        "[[], [0]]",
        "{}",
    ],
)
def test_forged_messages_are_refused(message: str) -> None:
    assert not _read_or_refuse(message.encode())


def _read_or_refuse(data: bytes) -> bool:
    """Return whether they could be read; what is read is plain data, which can be written again."""
    try:
        arrived = _read(data)
    except Exception:  # noqa: BLE001 - of any kind, which the tester expects
        return False
    _write(arrived)
    return True
