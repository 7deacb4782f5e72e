"""asyncio and threads for a process that gets neither sockets nor threads from the kernel.

A thread runs to its end when another one waits for something: one of the orders in which threads may
run. Those that wait for one another by turns wait for ever. An event loop needs no socket to wake it.
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
        """Only other threads would write to it."""

    _close_self_pipe = _write_to_self = _make_self_pipe

    def _run_once(self) -> None:
        while _waiting:
            _run_next()
        super()._run_once()  # type: ignore[misc]

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: the executor's work is done, and it has no threads.

        Args:
            timeout: Not read.
        """


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
    except BaseException:  # noqa: BLE001 - whatever a program raises
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
    """Have threads and asyncio work without either, before a program begins."""
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
