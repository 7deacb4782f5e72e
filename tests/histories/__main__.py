"""`python -m tests.histories`: plays random histories, or those of files, and tells what it found."""

import argparse
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.histories.beginning import beginning, build_other_run, build_pool
from tests.histories.drawing import Drawer
from tests.histories.edits import Impossible
from tests.histories.history import Action, Player, Report, read
from tests.histories.warm import Server, server

SHOWN = 9
"""Fewer differences of one run than these are shown in full."""


class Place:
    """Where histories are played one after the other, each in a folder of its own."""

    def __init__(self, warm: Server, folder: Path) -> None:
        self.warm, self.folder = warm, folder
        self.pool = build_pool(folder / "made")
        build_other_run(warm, self.pool)
        self.number = 0

    @contextlib.contextmanager
    def player(self, **extra: str) -> Iterator[Player]:
        self.number += 1
        world = beginning(self.folder / f"world{self.number}", self.pool)
        yield Player(self.warm, world, extra)
        shutil.rmtree(world.folder, ignore_errors=True)

    def play(self, actions: Iterable[Action], **extra: str) -> Report:
        with self.player(**extra) as player:
            return player.play(actions)


def drawn(player: Player, drawer: Drawer, done: list[Action]) -> Iterator[Action]:
    """The actions of a history, each drawn once the one before is done; those that are possible."""
    for action in drawer.history(player.world):
        try:
            player.act(action)
        except Impossible:
            player.report.lines.pop()
        else:
            done.append(action)
    yield from ()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="a JSON list of actions each")
    parser.add_argument("--count", type=int, default=100, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=2, help="which ones")
    parser.add_argument("--keep", type=Path, default="failed_histories", help="those that fail")
    options = parser.parse_args()
    drawer, begin = Drawer(random.Random(options.seed)), time.perf_counter()
    names = [f"{path.parent.name} {path.stem}" for path in options.files]
    names = names or [f"{options.seed}-{number}" for number in range(1, options.count + 1)]
    wrong, asked, used = Counter[str](), Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="histories-") as folder, server("--stand-in") as warm:
        place = Place(warm, Path(folder))
        for number, name in enumerate(names):
            start, actions = time.perf_counter(), list[Action]()
            with place.player() as player:
                if options.files:
                    actions = read(options.files[number])
                    report = player.play(actions)
                else:
                    report = player.play(drawn(player, drawer, actions))
            used.update(str(action[0]) for action in actions)
            wrong.update({what.split(":")[0][:60] for what in report.failures})
            wrong["histories"] += bool(report.failures)
            for key in ("asked", "in_vain", "of_copies"):
                asked[key] += getattr(player.economy, key)
            asked["runs"] += report.runs
            tell(name, report, time.perf_counter() - start)
            if report.failures:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{name}.json").write_text(json.dumps(actions) + "\n")
                (options.keep / f"{name}.log").write_text("\n".join(report.output))
    print("", ", ".join(f"{count} {name}" for name, count in sorted(used.items())), sep="\n")
    for what, count in wrong.most_common():
        print(f"{count:5} {what}")
    minutes = (time.perf_counter() - begin) / 60
    print(
        f"\n{len(names)} histories, {asked['runs']} runs in {minutes:.1f} minutes; "
        f"{wrong['histories']} failed\n{asked['asked']} questions asked, {asked['in_vain']} of them in "
        f"vain, {asked['of_copies']} again as their checkpoint was copied with new times"
    )
    return int(bool(wrong["histories"]))


def tell(name: str, report: Report, seconds: float) -> None:
    state = f"{len(report.failures)} wrong" if report.failures else "ok"
    print(f"{name:>4} {report.runs:2} runs {seconds:5.1f} s {state}", flush=True)
    wrong = 0
    for line in report.lines if report.failures else []:
        wrong = wrong + 1 if line.startswith("    ✗") else 0
        if wrong <= SHOWN:
            print(f"     {line}" if wrong < SHOWN else "         ✗ … and maybe more", flush=True)


if __name__ == "__main__":
    sys.exit(main())
