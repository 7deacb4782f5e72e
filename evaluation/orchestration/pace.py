"""Measures how fast the steps of a run finish, and estimates when the run will end."""

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from evaluation.wording import time_in_words

_LONG = ("score", "prefill")
"""Kinds of steps whose duration must be known before the end can be estimated."""


@dataclass
class Pace:
    """Counts and times steps by rule; `earlier` has their mean seconds in earlier runs."""

    earlier: Mapping[str, float] = field(default_factory=dict)
    total: int = 0
    _left: Counter[str] = field(default_factory=Counter)
    _begun: dict[int, tuple[str, float]] = field(default_factory=dict)
    _taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    _start: float = field(default_factory=lambda: time.monotonic())

    def plan(self, stats: Mapping[str, int]) -> None:
        """Note how many steps each rule has to do, as Snakemake reports it with their `total`."""
        self._left = Counter({rule: int(count) for rule, count in stats.items() if rule != "total"})
        self.total = self._left.total()

    def begin(self, job: int, rule: str) -> None:
        """Note that a step begins."""
        self._begun[job] = (rule, time.monotonic())

    def end(self, job: int) -> float:
        """Note that a step is done; return the seconds since it began."""
        rule, since = self._begun.pop(job, ("", time.monotonic()))
        seconds = time.monotonic() - since
        self._taken[_kind(rule)].append(seconds)
        self._left[rule] -= 1
        return seconds

    def left(self) -> float | None:
        """Estimate the remaining seconds if as many steps run at once as until now; None if not known."""
        now, work = time.monotonic(), 0.0
        others = [one for kind, s in self._taken.items() if not kind.startswith(_LONG) for one in s]
        short = mean(others) if others else 0.0
        for rule, count in (+self._left).items():
            seconds = self._seconds(rule)
            if seconds is None and rule.startswith(_LONG):
                return None
            work += count * (short if seconds is None else seconds)
        elapsed = [
            (now - since, self._seconds(rule) or 0.0) for rule, since in self._begun.values()
        ]
        work -= sum(min(pair) for pair in elapsed)
        busy = sum(map(sum, self._taken.values())) + sum(seconds for seconds, _ in elapsed)
        return work / max(1.0, busy / max(now - self._start, 1e-9))

    def in_words(self) -> str:
        """Return for example `3 of 9 steps, about 5 min left, until 14:30`."""
        left = self._left.total()
        text = f"{self.total - left} of {self.total} steps"
        seconds = self.left() if left > 0 else None
        if seconds is None:
            return text
        end = time.localtime(time.time() + seconds)
        clock = time.strftime("%H:%M" if seconds < 12 * 3600 else "%a %H:%M", end)
        return f"{text}, about {time_in_words(seconds)} left, until {clock}"

    def _seconds(self, rule: str) -> float | None:
        kind = _kind(rule)
        if kind in self._taken:
            return mean(self._taken[kind])
        return self.earlier.get(kind)


def earlier_seconds(jobs: Any) -> dict[str, float]:
    """Return the mean seconds of each kind of step in earlier runs, from benchmark files."""
    patterns = {_kind(job.rule.name): str(job.rule.benchmark) for job in jobs if job.benchmark}
    by_rule = {}
    for kind, pattern in patterns.items():
        path = Path(re.sub(r"\{[^}]*\}", "*", pattern))
        times = [seconds for file in path.parent.glob(path.name) for seconds in _times(file)]
        if times:
            by_rule[kind] = mean(times)
    return by_rule


def _times(path: Path) -> list[float]:
    try:
        return [
            float(json.loads(line)["s"]) for line in path.read_text(encoding="utf-8").splitlines()
        ]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def _kind(rule: str) -> str:
    """Return the name of a rule without its suffix for the bridge or for several checkpoints."""
    return re.sub(r"_(bridge|from_\d+)$", "", rule)
