"""What is needed next, prepared by a thread while something else is waited for."""

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")

_END = object()


@contextlib.contextmanager
def ahead(items: Iterable[Item], most: int) -> Iterator[Iterator[Item]]:
    """The same items in the same order, `most` of them made before they are asked for.

    What making them raises is raised where they are asked for, after those made before. When the
    block ends, however it does, the thread has ended too.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    source = iter(items)

    def take() -> Iterator[Item]:
        waiting = deque(pool.submit(next, source, _END) for _ in range(most))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(pool.submit(next, source, _END))
            yield item  # type: ignore[misc]  # mypy cannot tell it from the end

    try:
        yield take()
    finally:
        pool.shutdown(cancel_futures=True)
