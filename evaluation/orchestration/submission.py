"""Submits a job by the cluster's own sbatch, and prints its id alone. Runs as `sbatch` of the executor.

The executor reads an id from all that sbatch prints, and takes each refusal for a failed job. But sites
greet with numbers, limit the jobs that one user may have in the queue, and answer too late for a job that
was submitted. This program waits as long as a limit lasts, and asks the queue where an answer is unclear.
It needs Python alone, as it could be a part of the executor.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence

STDERR = "EVALUATION_STDERR"
"""Variable with the file that is the run's standard error: the executor keeps that of sbatch."""

WAIT = "EVALUATION_SBATCH_WAIT"
"""Variable with the seconds until a refused submission is repeated for the first time."""

_LONGEST_WAIT = 120.0
_UNCLEAR_TRIES = 3

_LIMIT = re.compile(
    r"QOSMax\w*|QOSGrp\w*|Assoc(?:Max|Grp)\w*|MaxSubmit\w*|job submit limit"
    r"|Job violates accounting/QOS policy"
)
"""Words of Slurm for a limit on jobs, of which some must end first."""
_NEVER = re.compile(r"Max(?:Wall|Cpu|Node|TRES|Mem|Gres)\w*|MinGRES|TimeLimit", re.IGNORECASE)
"""Limits on the job itself, which waiting does not change."""

_LATE = re.compile(r"timed out|Unable to contact|temporarily unavailable|Zero Bytes", re.IGNORECASE)
"""Words of a controller that may have taken the job nevertheless."""


def submit(sbatch: str, arguments: Sequence[str], script: bytes | None) -> int:
    """Submit a job, print its id to stdout, and return an exit code.

    Args:
        arguments: Its arguments, with --parsable, --job-name and --comment.
    """
    pause, told = float(os.environ.get(WAIT, "15")), ""
    unclear = 0
    while True:
        done = subprocess.run([sbatch, *arguments], input=script, capture_output=True, check=False)
        said = done.stderr.decode(errors="replace")
        if done.returncode == 0 and (job := _parsed(done.stdout.decode(errors="replace"))):
            print(job)
            return 0
        if done.returncode == 0 or _LATE.search(said):
            if jobs := _in_queue(arguments):  # submitted, whatever was answered
                print(jobs[-1])
                return 0
            unclear += 1
        limit = _LIMIT.search(said)
        is_passing = limit is not None and not _NEVER.search(said)
        if not is_passing and (not _LATE.search(said) or unclear >= _UNCLEAR_TRIES):
            sys.stderr.write(said or f"sbatch printed no job id: {done.stdout.decode()[:500]}")
            return done.returncode or 1
        if limit is not None and limit[0] != told:
            told = limit[0]
            _tell(
                f"Slurm takes no more jobs for now ({told}); submitting again until one has ended."
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_WAIT)


def _parsed(text: str) -> str | None:
    """Return the id that --parsable prints in a line of its own; None if no or several lines are one."""
    lines = re.findall(r"^(\d+(?:;\S+)?)$", text, re.MULTILINE)
    return lines[-1] if len(lines) == 1 else None


def _in_queue(arguments: Sequence[str]) -> list[str]:
    """Return the ids of waiting and running jobs with this one's name and comment, the latest last."""
    name, comment = _value(arguments, "--job-name"), _value(arguments, "--comment")
    if name is None or comment is None:
        return []
    query = ["squeue", "-h", f"--name={name}", "--states=PD,CF,R", "-o", "%A|%k"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.partition("|") for line in done.stdout.splitlines()]
    return sorted((job for job, _, said in rows if said == comment and job.isdigit()), key=int)


def _value(arguments: Sequence[str], option: str) -> str | None:
    place = arguments.index(option) + 1 if option in arguments else len(arguments)
    return arguments[place] if place < len(arguments) else None


def _tell(sentence: str) -> None:
    """Tell the user, as far as the run's standard error can be opened."""
    try:
        with open(os.environ[STDERR], "a", encoding="utf-8") as file:
            file.write(f"{sentence}\n")
    except (KeyError, OSError):
        sys.stderr.write(f"{sentence}\n")


def main(folder: str, *arguments: str) -> int:
    """Submit with the first sbatch on PATH that is not in `folder`, which holds this one."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    others = [target for target in folders if target != folder]
    sbatch = shutil.which("sbatch", path=os.pathsep.join(others))
    if sbatch is None:
        sys.stderr.write("sbatch: no such command on this machine\n")
        return 127
    script = sys.stdin.buffer.read() if "/dev/stdin" in arguments else None
    return submit(sbatch, arguments, script)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
