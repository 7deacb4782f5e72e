"""In place of Snakemake: "scores" each checkpoint in a moment, and notes which, and whether whole.

Run as `python -m tests.watching.stand_in TARGETS … --configfile FILE …`; the checkpoints as they are
meant to be lie in the folder that the variable WHOLE names. Files in the folder PLAY change what it
does: `refuse` (Snakemake's own lock), `queue` (a failed submission), `break_N` (step N is recorded as
one that cannot be scored), `hang` (until it is told to stop).
"""

import filecmp
import os
import signal
import sys
import time
from pathlib import Path

from evaluation.checkpoints.subjects import Subject, step_subject
from evaluation.dependencies.making import Made
from evaluation.dependencies.steps import COLLECT, SCORE
from evaluation.settings.config import load_config
from evaluation.settings.planning import plan_stages
from tests.dependencies.leaving import leave

PLAY = Path(os.environ.get("PLAY", "play"))


def main(arguments: list[str]) -> int:
    plans = plan_stages(load_config(arguments[arguments.index("--configfile") + 1]))
    if "--unlock" in arguments:
        (PLAY / "refuse").unlink()
        return 0
    if (PLAY / "refuse").exists():
        print("Error: Directory cannot be locked. Please make sure that no other Snakemake process")
        return 1
    if (PLAY / "queue").exists():
        print("WorkflowError: SLURM job submission failed: sbatch: error: too many jobs")
        return 1
    if (PLAY / "hang").exists():
        return hang()
    for target in arguments[: arguments.index("--keep-going")]:
        folder = Path(target).parents[1]
        plan = next(plan for plan in plans.values() if folder.is_relative_to(plan.results))
        play(step_subject(plan, int(folder.name.removeprefix("step_"))))
    return 0


def hang() -> int:
    signal.signal(signal.SIGINT, lambda *_: sys.exit((PLAY / "stopped").touch() or 0))
    (PLAY / "hangs").touch()
    while True:
        time.sleep(0.05)


def play(subject: Subject) -> None:
    state = "whole" if is_whole(subject) else "half"
    with open(PLAY / "scored", "a", encoding="utf-8") as file:
        file.write(f"{subject.step} {state}\n")
    leave_records(subject, "NaN" if (PLAY / f"break_{subject.step}").exists() else None)


def leave_records(subject: Subject, error: str | None = None) -> None:
    """Those of its scores and tier files, as jobs leave them."""
    leave(SCORE, subject, Made(error=error))
    leave(COLLECT, subject, Made(error=error))


def is_whole(subject: Subject) -> bool:
    """Whether the checkpoint is, file by file, what is meant to be written there."""
    meant = Path(os.environ["WHOLE"]) / str(subject.step)
    names = [str(path.relative_to(meant)) for path in meant.rglob("*") if path.is_file()]
    return filecmp.cmpfiles(meant, subject.checkpoint, names, shallow=False)[0] == names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
