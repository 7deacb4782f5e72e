"""The lines of each room of the package, beside the most that it may have: `python -m tests.rooms`."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

AT_MOST = {
    "settings": 2_800,
    "checkpoints": 2_600,
    "verification checks": 2_800,
    "providers": 900,
    "prefill tokenizers": 3_000,
    "scoring": 3_400,
    "results grading metrics": 2_600,
    "bridge": 2_400,
    "reporting": 2_800,
    "flow dependencies orchestration watching records.py": 1_800,
    "commands": 1_500,
    "root": 900,
}
"""The most lines of Python, templates and scripts, by the folders and files that are one room."""

BESIDE = {"tests .py": 22_000, "tests .yaml": 2_500, "workflow .smk Snakefile": 250}
"""The same of folders beside the package, by endings of files."""


def lines_in(folder: str, *endings: str) -> dict[Path, int]:
    """Return the lines of the files in a folder, and in those below it, by the endings of their names."""
    found = (path for path in (ROOT / folder).rglob("*") if path.name.endswith(endings))
    return {path.relative_to(ROOT / folder): path.read_bytes().count(b"\n") for path in found}


def rooms() -> Counter[str]:
    """Return the lines of each room of the package; what is in no other one is in `root`."""
    room_of = {part: room for room in AT_MOST for part in room.split()}
    lines: Counter[str] = Counter()
    for path, count in lines_in("evaluation", ".py", ".js", ".css", ".html").items():
        lines[room_of.get(path.parts[0], "root")] += count
    return lines


if __name__ == "__main__":
    counted = rooms()
    counted["all"] = counted.total()
    counted.update({name: sum(lines_in(*name.split()).values()) for name in BESIDE})
    for name, most in {**AT_MOST, "all": 30_000, **BESIDE}.items():
        print(f"{name:<52}{counted[name]:>7,} of {most:>6,}")
