"""What is found, written after every part, so that nothing is lost where a later one ends it all."""

import logging
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from evaluation.files import write_json

log = logging.getLogger(__name__)

Found = TypeVar("Found")


class Report:
    """The JSON of a run; `failed` are the parts that raised, each recorded with its reason."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content: dict[str, Any] = {"failed": []}

    @property
    def failed(self) -> list[str]:
        names: list[str] = self.content["failed"]
        return names

    def set(self, *place_and_value: Any) -> None:
        *place, value = place_and_value
        where = self.content
        for key in place[:-1]:
            where = where.setdefault(key, {})
        where[place[-1]] = value
        write_json(self.path, self.content)

    def part(self, place: tuple[str, ...], run: Callable[[], Found]) -> Found | None:
        """Runs a part and keeps what it gives; None where it failed, which the report then says."""
        name = " / ".join(place)
        start = time.perf_counter()
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            found = run()
        except Exception as error:  # noqa: BLE001 - whatever it is, the other parts are worth having
            traceback.print_exc()
            self.failed.append(name)
            self.set(*place, {"error": f"{type(error).__name__}: {error}"[:500]})
            return None
        print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        if isinstance(found, dict):
            self.set(*place, found)
        return found
