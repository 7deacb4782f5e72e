"""`python -m tests.histories`: plays many histories, or one again, and tells what it found.

HISTORIES=100     how many are drawn            HISTORIES_SEED=1   which ones
FILE …            plays the histories in these files instead, one JSON list of actions each
--shorten FILE    tries to leave out actions of a history as long as it fails
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.histories.beginning import beginning, build_pool
from tests.histories.edits_of_runs import build_other_run
from tests.histories.history import Action, Player, Report, is_change, read
from tests.histories.model import World
from tests.histories.runner import Server, server
from tests.histories.strategies import histories


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--shorten", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder for histories that fail")
    options = parser.parse_args()
    count = int(os.environ.get("HISTORIES", "100"))
    start = int(os.environ.get("HISTORIES_SEED", "1"))
    with tempfile.TemporaryDirectory(prefix="histories-") as scratch, server() as warm:
        place = Place(warm, Path(scratch))
        given_ones = [read(path) for path in options.files]
        if options.shorten:
            for actions in given_ones:
                print_history(shortened(place, actions), place)
            return 0
        chosen = given_ones or drawn(place, count, start)
        return play_all(place, chosen, options.keep or Path(scratch) / "failed")


class Place:
    """Where histories are played, each in a folder of its own."""

    def __init__(self, warm: Server, scratch: Path) -> None:
        self.warm = warm
        self.scratch = scratch
        self.pool = build_pool(scratch / "made")
        build_other_run(warm, self.pool)
        self.number = 0

    def play(self, actions: list[Action], **extra: str) -> Report:
        self.number += 1
        world = World(self.scratch / f"world{self.number}", self.pool)
        return Player(self.warm, world, beginning(self.pool), extra).play(actions)


def drawn(place: Place, count: int, start: int) -> list[list[Action]]:
    """The same histories for the same seed; Hypothesis's simplest one is not among them."""
    found: list[list[Action]] = []

    @seed(start)
    @settings(
        max_examples=count + 1,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(histories(beginning(place.pool)))
    def collect(actions: list[Action]) -> None:
        found.append(json.loads(json.dumps(actions)))

    collect()
    return found[1 : count + 1]


def play_all(place: Place, chosen: list[list[Action]], keep: Path) -> int:
    used: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    failed, runs, begin = 0, 0, time.perf_counter()
    for number, actions in enumerate(chosen, 1):
        report = place.play(actions)
        runs += report.runs
        used.update(str(action[0]) for action in actions)
        changes = sum(map(is_change, actions))
        state = f"{len(report.failures)} wrong" if report.failures else "ok"
        print(f"{number:4} {changes:2} changes {report.runs:2} runs {state}", flush=True)
        if report.failures:
            failed += 1
            kinds.update({what.split(":")[0][:60] for what in report.failures})
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{number}.json").write_text(json.dumps(actions))
            print("\n".join(f"     {line}" for line in report.told), flush=True)
    minutes = (time.perf_counter() - begin) / 60
    print(f"\n{len(chosen)} histories, {runs} runs of Snakemake in {minutes:.1f} minutes; ", end="")
    print(f"seed {os.environ.get('HISTORIES_SEED', '1')}; {failed} failed")
    print("\n".join(_columns(used)))
    if failed:
        print(f"\nWhat was wrong, in how many histories (kept in {keep}):")
        print("\n".join(f"{count:5} {what}" for what, count in kinds.most_common()))
    return int(bool(failed))


def _columns(used: Counter[str]) -> Iterator[str]:
    cells = [f"{count:5} {name:<26}" for name, count in sorted(used.items())]
    for start in range(0, len(cells), 4):
        yield "".join(cells[start : start + 4]).rstrip()


def shortened(place: Place, actions: list[Action]) -> list[Action]:
    """Leaves out one action after the other as long as something of the same kind is wrong."""
    kinds = {what.split(":")[0] for what in place.play(actions).failures}
    number = len(actions) - 1
    while number >= 0:
        fewer = actions[:number] + actions[number + 1 :]
        try:
            found = {what.split(":")[0] for what in place.play(fewer).failures}
        except (KeyError, IndexError, ValueError):  # an action that needs the one left out
            found = set()
        if found & kinds:
            actions, kinds = fewer, found & kinds
        number -= 1
    return actions


def print_history(actions: list[Action], place: Place) -> None:
    print(json.dumps(actions))
    print("\n".join(place.play(actions).told))


if __name__ == "__main__":
    sys.exit(main())
