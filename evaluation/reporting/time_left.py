"""How long the scoring that is missing will take, from how long it took where it is done."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluation.results.read import read_tier_file
from evaluation.settings.tiers import TierName
from evaluation.wording import time_in_words

DONE = "done"


@dataclass(frozen=True, kw_only=True)
class ScoredTiers:
    """A checkpoint's folder of results, and the state of each of its tiers."""

    folder: Path
    states: Mapping[TierName, str]


@dataclass(frozen=True, kw_only=True)
class TimeLeft:
    """Seconds of jobs, one after another, that `checkpoints` with missing tiers take.

    `unknown` are tiers that no checkpoint has been scored in; they are not in the seconds.
    """

    seconds: float
    checkpoints: int
    scored: int
    unknown: tuple[TierName, ...]

    @property
    def sentence(self) -> str:
        """The same in words."""
        count = f"{self.checkpoints} checkpoint{'' if self.checkpoints == 1 else 's'}"
        if not self.scored:
            return f"scoring left: {count}; how long that takes is known after the first one"
        more = f"; without {', '.join(self.unknown)}, of which none is done" if self.unknown else ""
        return (
            f"scoring left: about {time_in_words(self.seconds)} for {count}, one after another, if each takes "
            f"as long as the {self.scored} that are done{more}"
        )


def time_left(scoreds: Iterable[ScoredTiers]) -> TimeLeft | None:
    """Return how long the missing scoring of a stage takes; None where nothing is missing.

    A tier is expected to take the mean time of the checkpoints that have it, if their files say how long it took.
    What is outdated counts as missing.
    """
    known = list(scoreds)
    missing = [scored for scored in known if any(state != DONE for state in scored.states.values())]
    if not missing:
        return None
    seconds: dict[TierName, list[float]] = {}
    for scored in known:
        for tier, state in scored.states.items():
            if state == DONE and (took := read_tier_file(scored.folder, tier).seconds) is not None:
                seconds.setdefault(tier, []).append(took)
    lacking = [tier for one in missing for tier, state in one.states.items() if state != DONE]
    return TimeLeft(
        seconds=sum(sum(seconds[t]) / len(seconds[t]) for t in lacking if t in seconds),
        checkpoints=len(missing),
        scored=max(map(len, seconds.values()), default=0),
        unknown=tuple(dict.fromkeys(tier for tier in lacking if tier not in seconds)),
    )
