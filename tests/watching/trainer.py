"""A training run that saves checkpoints as trainers do: slowly, file by file, and not always to the end."""

import time
from pathlib import Path


def train(whole: Path, folder: Path, pause: float) -> None:
    """Saves 10; crashes in 20 and saves it anew; saves 30; is killed in 40.

    It pauses for so many seconds within a checkpoint, and after each.
    """
    for step, until in ((10, 1.0), (20, 0.6), (20, 1.0), (30, 1.0), (40, 0.7)):
        (folder / "latest.txt").write_text(str(step))  # it runs ahead
        write(whole / str(step), folder / str(step), until=until, pause=pause)
        time.sleep(pause)


def write(source: Path, target: Path, *, until: float, pause: float) -> None:
    """The configuration first, the weights last; `until` is the part after which it crashes."""
    names = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    names.sort(key=lambda name: name.parts[0] == "model")
    half = len(names) // 2
    for number, name in enumerate(names):
        content = (source / name).read_bytes()
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if number >= until * len(names):
            (target / name).write_bytes(content[: len(content) // 2])
            return
        with open(target / name, "wb") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            time.sleep(pause if number == half else 0.02)
            file.write(content[len(content) // 2 :])
