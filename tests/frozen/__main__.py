"""`python -m tests.frozen compare FOLDER --from CHECKOUT [--expected FILE]`."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from tests.frozen.checkout import Checkout, read_jsonl, write_jsonl
from tests.frozen.differences import SHOWN, Numbers, differences, expected, largest, unexpected
from tests.frozen.numbers import PARTS, make_part


def main() -> int:
    """Compare a checkout's numbers with the frozen ones; return 1 if any differs unexpectedly."""
    parser = argparse.ArgumentParser(prog="python -m tests.frozen", description=__doc__)
    parser.add_argument("act", choices=("compare",))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--from", dest="checkout", type=Path, required=True)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), help="only these")
    parser.add_argument(
        "--expected", type=Path, help="expected changes: `pattern  # reason`, one a line"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)  # whatever else the machine does
    folder, root = options.folder.absolute(), options.checkout.absolute()
    code = 0
    for part in options.part:
        now = make_part(part, folder, Checkout(root, folder / "now"))
        write_jsonl(folder / f"now/{part}.jsonl.gz", now)
        before = read_jsonl(folder / f"{part}.jsonl.gz")
        code |= _report(_by_key(before), _by_key(now), options.expected)
    return code


def _by_key(lines: Iterable[Sequence[Any]]) -> Numbers:
    return {(kind, key): value for kind, key, value in lines}


def _report(before: Numbers, now: Numbers, path: Path | None) -> int:
    lines = differences(before, now)
    left = unexpected(lines, expected(path))
    for kind in sorted({kind for kind, _ in before}):
        count = sum(of == kind for of, _ in before)
        print(
            f"{kind}: {count} numbers, {len(lines.get(kind, ()))} differ, "
            f"{largest(before, now, kind):.3g} at most"
        )
    for kind, texts in left.items():
        print(f"\n{kind}: {len(texts)} not expected")
        print(*(f"  {text}" for text in texts[:SHOWN]), sep="\n")
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main())
