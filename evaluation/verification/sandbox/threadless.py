"""Emulates threads and asyncio in a process that may not create threads or sockets.

A started thread runs to its end as soon as another one waits for something, which is one of the possible
orders. Threads that wait for each other in turns wait for ever. An event loop needs no wake-up socket.
"""

import _threading_local
import asyncio
import concurrent.futures.thread
import contextlib
import selectors
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())

    def _make_self_pipe(self) -> None:
        """Do nothing: only other threads would write to this pipe."""

    _close_self_pipe = _write_to_self = _make_self_pipe

    def _run_once(self) -> None:
        while _waiting:
            _run_next()
        super()._run_once()  # type: ignore[misc]

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: the executor's work is done, and it has no threads."""


class _Policy(asyncio.DefaultEventLoopPolicy):
    _loop_factory = _Loop


_waiting: list[threading.Thread] = []
"""Threads that were started and have not run yet."""
_wait_for_condition, _wait_for_event = threading.Condition.wait, threading.Event.wait


def _start(thread: Any) -> None:
    if thread._started.is_set():
        raise RuntimeError("threads can only be started once")
    thread._started.set()
    _waiting.append(thread)


def _run_next() -> None:
    thread, active = _waiting.pop(0), threading._active  # type: ignore[attr-defined]
    place = threading.get_ident()
    caller, active[place] = threading.current_thread(), thread
    try:
        with contextlib.suppress(SystemExit):
            thread.run()
    except BaseException:  # noqa: BLE001 - a program may raise anything
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), thread)))
    finally:
        active[place] = caller


def _join(thread: Any, timeout: float | None = None) -> None:
    if not thread._started.is_set():
        raise RuntimeError("cannot join thread before it is started")
    while thread in _waiting:
        _run_next()


def _wait_on_condition(condition: Any, timeout: float | None = None) -> bool:
    if not _waiting:
        return _wait_for_condition(condition, timeout)
    state = condition._release_save()
    try:
        _run_next()
    finally:
        condition._acquire_restore(state)
    return True


def _wait_on_event(event: threading.Event, timeout: float | None = None) -> bool:
    while _waiting and not event.is_set():
        _run_next()
    return _wait_for_event(event, timeout)


def _sleep(seconds: float, _sleep: Callable[[float], None] = time.sleep) -> None:
    while _waiting:
        _run_next()
    _sleep(seconds)


def _submit(
    executor: Any, function: Callable[..., Any], /, *arguments: Any, **named: Any
) -> "Future[Any]":
    if executor._shutdown:
        raise RuntimeError("cannot schedule new futures after shutdown")
    future: Future[Any] = Future()
    concurrent.futures.thread._WorkItem(future, function, arguments, named).run()
    return future


def prepare() -> None:
    """Replace functions of threading and asyncio by these, before a program starts."""
    asyncio.set_event_loop_policy(_Policy())
    replaced: tuple[tuple[Any, str, Any], ...] = (
        (threading.Thread, "start", _start),
        (threading.Thread, "join", _join),
        (threading.Thread, "is_alive", lambda thread: thread in _waiting),
        (threading.Condition, "wait", _wait_on_condition),
        (threading.Event, "wait", _wait_on_event),
        (threading, "local", _threading_local.local),
        (ThreadPoolExecutor, "submit", _submit),
        (time, "sleep", _sleep),
    )
    for owner, name, value in replaced:
        setattr(owner, name, value)
