"""`python -m tests.bad_input`: plays the table, or a part of it, and counts by kind and outcome."""

import argparse
import collections
import json
import sys
import tempfile
from pathlib import Path

from tests.bad_input.cases import Case, all_cases
from tests.bad_input.play import Ended, play
from tests.bad_input.workshop import build
from tests.histories.runner import server


def main() -> int:
    options = _options()
    cases = _chosen(options)
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    with (
        options.failures.open("w") as failures,
        server("--plain") as warm,
        tempfile.TemporaryDirectory(prefix="bad-input-") as folder,
    ):
        shop = build(Path(folder) / "shop", warm)
        for number, case in cases:
            ended = play(case, shop, str(warm.place))
            counts[case.kind][ended.verdict] += 1
            if (
                sys.stderr.isatty()
                or sum(map(sum, (c.values() for c in counts.values()))) % 50 == 0
            ):
                print(f"{number} played", file=sys.stderr)
            if options.show or ended.verdict != "right":
                _tell(number, ended, options.show)
            if ended.verdict != "right":
                print(json.dumps(_record(number, ended)), file=failures, flush=True)
    _table(counts)
    return int(any(set(found) - {"right"} for found in counts.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bad_input")
    parser.add_argument("--kind", help="only cases of these kinds, parted by commas")
    parser.add_argument("--case", help="only cases whose name has this text, or of this number")
    parser.add_argument("--part", default="1/1", help="`2/3`: the second of three even parts")
    parser.add_argument("--list", action="store_true", help="count the cases, and play none")
    parser.add_argument("--show", action="store_true", help="tell what every case said")
    parser.add_argument("--failures", type=Path, default=Path("bad_input_failures.jsonl"))
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> list[tuple[int, Case]]:
    cases = list(enumerate(all_cases()))
    if options.list:
        for kind, count in collections.Counter(case.kind for _, case in cases).items():
            print(f"{count:6}  {kind}")
        print(f"{len(cases):6}  in all")
        sys.exit()
    if options.kind:
        cases = [pair for pair in cases if pair[1].kind in options.kind.split(",")]
    if options.case:
        text = options.case
        cases = [
            (number, case)
            for number, case in cases
            if (number == int(text) if text.isdigit() else text in case.name)
        ]
    part, parts = map(int, options.part.split("/"))
    return cases[part - 1 :: parts]


def _tell(number: int, ended: Ended, everything: bool) -> None:
    case = ended.case
    print(
        f"{number} [{case.kind}] {case.name}: {ended.verdict} (exit {ended.code}, {ended.seconds:.1f} s) {ended.detail}",
        flush=True,
    )
    if everything:
        print("".join(f"    {line}\n" for line in [*case.do, case.run]))
        print(ended.said)


def _record(number: int, ended: Ended) -> dict[str, object]:
    case = ended.case
    return {
        "number": number,
        "kind": case.kind,
        "name": case.name,
        "verdict": ended.verdict,
        "detail": ended.detail,
        "do": case.do,
        "run": case.run,
        "end": case.end,
        "words": case.words,
        "code": ended.code,
        "seconds": round(ended.seconds, 1),
        "said": ended.said[-3000:],
    }


def _table(counts: dict[str, collections.Counter[str]]) -> None:
    for kind, found in counts.items():
        print(f"{kind}: " + ", ".join(f"{count} {name}" for name, count in found.most_common()))
    total = sum(counts.values(), collections.Counter())
    print("in all: " + ", ".join(f"{count} {name}" for name, count in total.most_common()))


if __name__ == "__main__":
    sys.exit(main())
