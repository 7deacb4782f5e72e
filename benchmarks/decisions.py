"""python -m benchmarks.decisions: how often verdicts are wrong in worlds whose truth is known.

The worlds of tests/bridge/worlds.py are drawn in batches of BATCH; each batch is a line of the file `--out`,
so a run that was stopped goes on where it ended. At the end the table of docs/verdicts.md is printed.
"""

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bridge.worlds import WORLDS, World, shares

BATCH = 100


def batches(path: Path) -> dict[str, list[tuple[float, float]]]:
    """Return the shares of each batch that was drawn, by world."""
    found: dict[str, list[tuple[float, float]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        entry = json.loads(line)
        found.setdefault(entry["world"], []).append((entry["counted"], entry["covered"]))
    return found


def draw(path: Path, draws: int) -> None:
    """Draw what is lacking of each world, the worlds with fewest batches first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {name: len(found) for name, found in batches(path).items()}
    for batch in range(math.ceil(draws / BATCH)):
        for world in WORLDS:
            if done.get(world.name, 0) <= batch:
                counted, covered = shares(world, BATCH, 1000 + batch)
                entry = {"world": world.name, "counted": counted, "covered": covered}
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def table(path: Path) -> Iterator[str]:
    """Yield the lines of the table, in Markdown."""
    found = batches(path)
    draws = BATCH * min(map(len, found.values()), default=0)
    yield f"| world, {draws:,} draws | falsely met, % | covered, % |"
    yield "|---|--:|--:|"
    for world in WORLDS:
        if world.name in found:
            yield _row(world, found[world.name])


def _row(world: World, drawn: Sequence[tuple[float, float]]) -> str:
    count = len(drawn) * BATCH
    counted, covered = (sum(column) / len(drawn) for column in zip(*drawn, strict=True))
    error = math.sqrt(max(counted * (1 - counted), 1 / count) / count)
    share = f"{100 * counted:.1f}±{100 * error:.1f}"
    if world.counts != "falsely met":
        return f"| {world.name}: {world.counts} | {share} | |"
    return f"| {world.name} | {share} | {100 * covered:.1f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__)
    parser.add_argument("--draws", type=int, default=4000, help="of each world")
    parser.add_argument("--out", type=Path, default=Path("worlds.jsonl"), help="file of batches")
    given = parser.parse_args(arguments)
    draw(given.out, given.draws)
    print("\n".join(table(given.out)))


if __name__ == "__main__":
    main()
