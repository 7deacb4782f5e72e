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

from tests.histories.beginning import beginning, build_pool
from tests.histories.drawing import draw_history
from tests.histories.history import Action, Player, read
from tests.histories.warm import Server, server
from tests.histories.world import Impossible


class Place:
    """Where histories are played one after the other, each in a folder of its own."""

    def __init__(self, warm: Server, folder: Path) -> None:
        self.warm, self.folder = warm, folder
        self.pool = build_pool(folder / "made")
        self.number = 0

    @contextlib.contextmanager
    def player(self, **extra: str) -> Iterator[Player]:
        self.number += 1
        world = beginning(self.folder / f"world{self.number}", self.pool)
        yield Player(self.warm, world, extra)
        shutil.rmtree(world.folder, ignore_errors=True)

    def play(self, actions: Iterable[Action], **extra: str) -> Player:
        with self.player(**extra) as player:
            player.play(actions)
        return player


def drawn(player: Player, dice: random.Random, done: list[Action]) -> Iterator[Action]:
    """The actions of a history, each drawn once the one before is done; those that are possible."""
    for action in draw_history(dice, player.world):
        try:
            player.act(action)
        except Impossible:
            player.lines.pop()
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
    drawn_names = (f"{options.seed}-{number}" for number in range(1, options.count + 1))
    names = [f"{path.parent.name} {path.stem}" for path in options.files] or [*drawn_names]
    total = Counter[str]()
    with tempfile.TemporaryDirectory(prefix="histories-") as folder, server("--stand-in") as warm:
        place = Place(warm, Path(folder))
        for number, name in enumerate(names):
            start, actions = time.perf_counter(), list[Action]()
            with place.player() as player:
                if options.files:
                    actions = read(options.files[number])
                    player.play(actions)
                else:
                    player.play(drawn(player, random.Random(name), actions))
            total["failed"] += bool(player.failures)
            total.update(asked=player.economy.asked, in_vain=player.economy.in_vain)
            state = f"{len(player.failures)} wrong" if player.failures else "ok"
            seconds = time.perf_counter() - start
            print(f"{name:>4} {player.runs:2} runs {seconds:5.1f} s {state}", flush=True)
            if player.failures:
                print("\n".join(player.lines), flush=True)
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{name}.json").write_text(json.dumps(actions) + "\n")
                (options.keep / f"{name}.log").write_text("\n".join(player.output))
    print(
        f"\n{len(names)} histories, {total['failed']} failed; "
        f"{total['asked']} questions asked, {total['in_vain']} of them in vain"
    )
    return int(bool(total["failed"]))


if __name__ == "__main__":
    sys.exit(main())
