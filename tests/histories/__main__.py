"""`python -m tests.histories`: plays many histories, or one again, and tells what it found.

HISTORIES=100     how many are drawn            HISTORIES_SEED=2   which ones
HISTORIES_AT_ONCE=2     how many are played at once, each by a warm server of its own
FILE …            plays the histories in these files instead, one JSON list of actions each, such
                  as tests/histories/fixed/*.json
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.histories.beginning import beginning, build_pool
from tests.histories.drawing import Drawer
from tests.histories.edits_of_settings import build_other_run
from tests.histories.history import Action, Player, Report, is_change, read
from tests.histories.runner import Server, server
from tests.histories.world import World

SEED = 2
"""With it a hundred histories have every kind of edit, accident and command."""

SHOWN = 9
"""Fewer differences of one run than these are shown in full."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument(
        "--keep", type=Path, default="failed_histories", help="folder for histories that fail"
    )
    options = parser.parse_args()
    count, seed, at_once = (
        int(os.environ.get(f"HISTORIES{name}", default))
        for name, default in (("", 100), ("_SEED", SEED), ("_AT_ONCE", 2))
    )
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(at_once) as threads:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="histories-")))
        pool = build_pool(folder / "made")
        servers = threads.map(lambda _: stack.enter_context(server()), range(at_once))
        places = [Place(warm, folder / f"place{n}", pool) for n, warm in enumerate(servers)]
        build_other_run(places[0].warm, pool)
        chosen = {f"{path.parent.name} {path.stem}": read(path) for path in options.files}
        return play_all(places, chosen or drawn(pool, count, seed), options.keep)


class Place:
    """Where histories are played one after the other, each in a folder of its own."""

    def __init__(self, warm: Server, scratch: Path, pool: Path) -> None:
        self.warm, self.scratch, self.pool = warm, scratch, pool
        self.number = 0

    def play(self, actions: list[Action], **extra: str) -> Report:
        self.number += 1
        world = World(self.scratch / f"world{self.number}", self.pool)
        report = Player(self.warm, world, beginning(self.pool), extra).play(actions)
        shutil.rmtree(world.folder, ignore_errors=True)
        return report


def drawn(pool: Path, count: int, seed: int) -> dict[str, list[Action]]:
    """The same histories for the same seed."""
    drawer = Drawer(beginning(pool), random.Random(seed))
    return {str(number): drawer.history() for number in range(1, count + 1)}


def play_all(places: list[Place], chosen: dict[str, list[Action]], keep: Path) -> int:
    """Plays them, as many at once as there are places; reports each in their order."""
    local = threading.local()

    def play(actions: list[Action]) -> tuple[Report, float]:
        start = time.perf_counter()
        if not hasattr(local, "place"):
            local.place = places.pop()
        return local.place.play(actions), time.perf_counter() - start

    begin, reports = time.perf_counter(), list[Report]()
    with ThreadPoolExecutor(len(places)) as threads:
        for (name, actions), (report, seconds) in zip(
            chosen.items(), threads.map(play, chosen.values()), strict=True
        ):
            reports.append(report)
            _print_history(name, actions, report, seconds)
            if report.failures:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{name}.json").write_text(json.dumps(actions) + "\n")
                (keep / f"{name}.log").write_text("\n".join(report.output))
    minutes = (time.perf_counter() - begin) / 60
    used = Counter(str(action[0]) for actions in chosen.values() for action in actions)
    cells = [f"{count:5} {name:<26}" for name, count in sorted(used.items())]
    print("", *("".join(cells[at : at + 4]).rstrip() for at in range(0, len(cells), 4)), sep="\n")
    wrong = Counter(kind for report in reports for kind in _kinds(report))
    if wrong:
        print(f"\nWhat was wrong, in how many histories (kept in {keep}):")
        print("\n".join(f"{count:5} {what}" for what, count in wrong.most_common()))
    runs, asked, in_vain, of_copies = (
        sum(getattr(report, name) for report in reports)
        for name in ("runs", "asked", "in_vain", "of_copies")
    )
    failed = sum(bool(report.failures) for report in reports)
    print(
        f"\n{len(chosen)} histories, {runs} runs in {minutes:.1f} minutes; {failed} failed\n{asked} "
        f"questions asked, {in_vain} of them in vain, {of_copies} again as their checkpoint was copied "
        "with new times"
    )
    return int(bool(wrong))


def _kinds(report: Report) -> set[str]:
    return {what.split(":")[0][:60] for what in report.failures}


def _print_history(name: str, actions: list[Action], report: Report, seconds: float) -> None:
    state = f"{len(report.failures)} wrong" if report.failures else "ok"
    counted = f"{sum(map(is_change, actions)):2} changes {report.runs:2} runs {seconds:5.1f} s"
    print(f"{name:>4} {counted} {state}", flush=True)
    wrong = 0
    for line in report.lines if report.failures else []:
        wrong = wrong + 1 if line.startswith("    ✗") else 0
        if wrong <= SHOWN:
            print(f"     {line}" if wrong < SHOWN else "         ✗ … and maybe more", flush=True)


if __name__ == "__main__":
    sys.exit(main())
