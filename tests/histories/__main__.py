"""`python -m tests.histories`: plays many histories, or one again, and tells what it found.

HISTORIES=100     how many are drawn            HISTORIES_SEED=3   which ones
HISTORIES_AT_ONCE=2     how many are played at once, each by a warm server of its own
FILE …            plays the histories in these files instead, one JSON list of actions each, such
                  as tests/histories/fixed/*.json
--shorten FILE    tries to leave out actions of a history as long as it fails
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from tests.histories.beginning import beginning, build_pool
from tests.histories.drawing import Drawer
from tests.histories.edits_of_settings import build_other_run
from tests.histories.history import Action, Player, Report, is_change, read
from tests.histories.runner import Server, server
from tests.histories.world import World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--shorten", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder for histories that fail")
    options = parser.parse_args()
    count = int(os.environ.get("HISTORIES", "100"))
    start = int(os.environ.get("HISTORIES_SEED", str(SEED)))
    at_once = int(os.environ.get("HISTORIES_AT_ONCE", "2"))
    scratch = tempfile.TemporaryDirectory(prefix="histories-")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(scratch))
        pool = build_pool(folder / "made")
        with ThreadPoolExecutor(at_once) as threads:
            servers = threads.map(lambda _: stack.enter_context(server()), range(at_once))
            places = [
                Place(warm, folder / f"place{number}", pool) for number, warm in enumerate(servers)
            ]
        build_other_run(places[0].warm, pool)
        given_ones = {path.stem: read(path) for path in options.files}
        if options.shorten:
            for actions in given_ones.values():
                print_history(shortened(places[0], actions), places[0])
            return 0
        chosen = given_ones or drawn(pool, count, start)
        return play_all(places, chosen, options.keep or Path("failed_histories"))


SEED = 3
"""With it a hundred histories have every kind of edit, accident and command."""

SHOWN = 9
"""Fewer differences of one run than these are told in full."""


class Place:
    """Where histories are played one after the other, each in a folder of its own."""

    def __init__(self, warm: Server, scratch: Path, pool: Path) -> None:
        self.warm, self.scratch, self.pool = warm, scratch, pool
        self.number = 0

    def play(self, actions: list[Action], **extra: str) -> Report:
        self.number += 1
        world = World(self.scratch / f"world{self.number}", self.pool)
        report = Player(self.warm, world, beginning(self.pool), extra).play(actions)
        shutil.rmtree(world.folder, ignore_errors=True)  # a watcher's Snakemake may outlive it
        return report


def drawn(pool: Path, count: int, start: int) -> dict[str, list[Action]]:
    """The same histories for the same seed."""
    drawer = Drawer(beginning(pool), random.Random(start))
    return {str(number): drawer.history() for number in range(1, count + 1)}


def play_all(places: list[Place], chosen: dict[str, list[Action]], keep: Path) -> int:
    """Plays them, as many at once as there are places; tells of each in their order."""
    free: Queue[Place] = Queue()
    for place in places:
        free.put(place)

    def play(actions: list[Action]) -> tuple[Report, float]:
        place, start = free.get(), time.perf_counter()
        try:
            return place.play(actions), time.perf_counter() - start
        finally:
            free.put(place)

    begin, reports = time.perf_counter(), list[Report]()
    with ThreadPoolExecutor(len(places)) as threads:
        played = threads.map(play, chosen.values())
        for (name, actions), (report, seconds) in zip(chosen.items(), played, strict=True):
            reports.append(report)
            _tell(name, actions, report, seconds)
            if report.failures:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{name}.json").write_text(json.dumps(actions) + "\n")
                (keep / f"{name}.log").write_text("\n".join(report.output))
    failed = sum(bool(report.failures) for report in reports)
    runs, asked, in_vain, of_copies = (
        sum(getattr(report, name) for report in reports)
        for name in ("runs", "asked", "in_vain", "of_copies")
    )
    minutes = (time.perf_counter() - begin) / 60
    used = Counter(str(action[0]) for actions in chosen.values() for action in actions)
    cells = [f"{count:5} {name:<26}" for name, count in sorted(used.items())]
    print(f"\n{len(chosen)} histories, {runs} runs in {minutes:.1f} minutes; ", end="")
    print(f"seed {os.environ.get('HISTORIES_SEED', SEED)}; {failed} failed")
    print(
        f"{asked} questions asked, {in_vain} of them in vain, {of_copies} again as their checkpoint "
        "was copied with new times"
    )
    print(*("".join(cells[at : at + 4]).rstrip() for at in range(0, len(cells), 4)), sep="\n")
    if failed:
        wrong = Counter(
            kind
            for report in reports
            for kind in {what.split(":")[0][:60] for what in report.failures}
        )
        print(f"\nWhat was wrong, in how many histories (kept in {keep}):")
        print("\n".join(f"{count:5} {what}" for what, count in wrong.most_common()))
    return int(bool(failed))


def _tell(name: str, actions: list[Action], report: Report, seconds: float) -> None:
    changes = sum(map(is_change, actions))
    state = f"{len(report.failures)} wrong" if report.failures else "ok"
    counted = f"{changes:2} changes {report.runs:2} runs {seconds:5.1f} s"
    print(f"{name:>4} {counted} {state}", flush=True)
    wrong = 0
    for line in report.told if report.failures else []:
        wrong = wrong + 1 if line.startswith("    ✗") else 0
        if wrong <= SHOWN:
            print(f"     {line}" if wrong < SHOWN else "         ✗ … and maybe more", flush=True)


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
