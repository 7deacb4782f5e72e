"""A process of a team that is not the leader: calls what it is told to, and says that it has.

Run by `team.py`. It ends when the leader does, also where it waits for the leader on a GPU.
"""

import contextlib
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from types import MethodType
from typing import IO, Any

from evaluation.errors import EvaluationError
from evaluation.scoring.team.messages import Call, Done, Failed, Joining, receive, send

log = logging.getLogger(__name__)


def main() -> None:
    asked, told = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the leader is interrupted too, and ends it
    logging.basicConfig(level=logging.WARNING)
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked, calls), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        _serve(calls, told)
    sys.stderr.flush()
    os._exit(1)  # a GPU's library may wait for the others as it is taken apart


def _listen(asked: IO[bytes], calls: "queue.SimpleQueue[Any]") -> None:
    """Passes on what the leader says; without a leader there is nothing to end well."""
    try:
        while True:
            calls.put(receive(asked))
    except EOFError:
        os._exit(1)
    except Exception as error:
        log.debug("where it happened:", exc_info=True)
        calls.put(error)  # which is told to the leader


def _serve(calls: "queue.SimpleQueue[Any]", told: IO[bytes]) -> None:
    """Answers calls until one fails: what the others then wait for does not come."""
    joining: Joining = calls.get()
    answers = _answers(joining, calls)
    while True:
        try:
            next(answers)
        except EvaluationError as error:
            send(told, Failed(type(error).__name__, str(error)))
            return
        except Exception as error:
            log.debug("where it happened:", exc_info=True)
            first = (str(error).splitlines() or [""])[0][:300]
            send(told, Failed("", f"{type(error).__name__}: {first}"))
            return
        send(told, Done())


def _answers(joining: Joining, calls: "queue.SimpleQueue[Any]") -> Iterator[None]:
    """Gets ready, then does a call each time it is asked for the next."""
    from evaluation.scoring.team.backend import member

    backend = member(joining)
    yield
    while True:
        call: Call | Exception = calls.get()
        if isinstance(call, Exception):
            raise call
        found = getattr(backend, call.method)
        if isinstance(found, MethodType):  # and no property
            found = found(*call.arguments, **dict(call.keywords))
        if isinstance(found, Iterator):
            for _ in found:
                pass
        yield


if __name__ == "__main__":
    main()
