"""One run at a time writes a folder of results: its lock names the process that does.

Snakemake's own lock is in the folder in which it was started; two runs may share results. What a killed
run left is taken over on its own host. On another host nobody can tell whether it still runs.
"""

import json
import os
import socket
from pathlib import Path

from evaluation.errors import OutputError
from evaluation.files import write_json

_HERE = socket.gethostname()


class ResultsLock:
    """The lock of a folder of results; it names host, process and the process's start."""

    def __init__(self, results: Path) -> None:
        self.path = results / ".made" / "lock.json"
        self._own = {"host": _HERE, "process": os.getpid(), "started": _started(os.getpid())}

    def take(self) -> None:
        """Take the lock; raise OutputError where another run has it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        mine = self.path.with_name(f"lock-{_HERE}-{os.getpid()}.json")
        write_json(mine, self._own)
        try:
            if (holder := self._holder()) is not None and not self._is_left(holder):
                raise OutputError(
                    f"{self.path.parents[1]}: another run (process {holder['process']} on {holder['host']}) "
                    f"works on these results; wait until it has ended, or delete {self.path} if it was killed"
                )
            if holder is not None:
                self.path.unlink(missing_ok=True)
            os.link(mine, self.path)
        except FileExistsError:
            raise OutputError(
                f"{self.path}: another run was faster; wait until it has ended"
            ) from None
        finally:
            mine.unlink()

    def release(self) -> None:
        """Give the lock back, if this run has it."""
        if self._holder() == self._own:
            self.path.unlink(missing_ok=True)

    def _holder(self) -> dict[str, object] | None:
        try:
            holder = json.loads(self.path.read_text(encoding="utf-8"))
            return {key: holder[key] for key in self._own}
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _is_left(self, holder: dict[str, object]) -> bool:
        pid = holder["process"]
        return holder["host"] == _HERE and holder["started"] != _started(
            pid if isinstance(pid, int) else 0
        )


def _started(pid: int) -> str:
    """Return when a process of this host started, in ticks since boot; empty if it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state == "Z" else fields[18]
