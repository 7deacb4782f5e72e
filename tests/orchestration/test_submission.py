"""Submissions on sites that limit, greet, or answer late, with stand-ins for sbatch and squeue."""

import os
import subprocess
from pathlib import Path

import pytest

from evaluation.orchestration import submission
from evaluation.orchestration.slurm import submit_patiently

SQUEUE = '#!/bin/sh\ncat "$QUEUE/jobs"\n'
SBATCH = """#!/bin/sh
echo "$*" >> "$QUEUE/calls"
answer=$(wc -l < "$QUEUE/calls")
. "$QUEUE/site"
"""
OPTIONS = ["--parsable", "--job-name", "run", "--comment", "rule_a_b c", "--wrap=true"]

LIMITED = """
if [ "$answer" -lt 4 ]; then
  echo "sbatch: error: QOSMaxSubmitJobPerUserLimit" >&2
  echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit \
limit, user's size and/or time limits)" >&2
  exit 1
fi
echo 17
"""
GREETING = """
echo ------------
echo "   Welcome to cluster 42, project 2026_007, 3 nodes free"
echo "sbatch: You will be charged for 8 CPUs" >&2
echo "17;cluster"
"""
UNCLEAR = """
echo 4 5
echo "You have job 3"
echo "17|rule_a_b c" >> "$QUEUE/jobs"
"""
LATE = """
[ "$answer" -gt 1 ] && echo "17|rule_a_b c" >> "$QUEUE/jobs"
echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1
"""
SITES = {"limited": LIMITED, "greeting": GREETING, "unclear": UNCLEAR, "late": LATE}
CALLS = {"limited": 4, "greeting": 1, "unclear": 1, "late": 2}


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the stand-ins, which are on PATH behind the sbatch of a run."""
    for name, text in (("squeue", SQUEUE), ("sbatch", SBATCH)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "jobs").write_text("12|another\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("QUEUE", str(tmp_path))
    monkeypatch.setenv(submission.WAIT, "0.01")
    submit_patiently(tmp_path / "commands with a blank")
    monkeypatch.setenv(submission.STDERR, str(tmp_path / "told"))
    return tmp_path


def submit(queue: Path, site: str, *more: str) -> "subprocess.CompletedProcess[str]":
    (queue / "site").write_text(site)
    command = ["sbatch", *OPTIONS, *more]
    return subprocess.run(command, capture_output=True, text=True, check=False, input="#!/bin/sh\n")


@pytest.mark.parametrize("site", SITES)
def test_the_job_s_id_is_all_that_is_printed(queue: Path, site: str) -> None:
    done = submit(queue, SITES[site])
    assert done.stdout.strip().partition(";")[0] == "17"
    assert (done.returncode, done.stderr) == (0, "")
    assert len((queue / "calls").read_text().splitlines()) == CALLS[site]


def test_the_limit_is_named_once(queue: Path) -> None:
    submit(queue, LIMITED)
    assert (queue / "told").read_text() == (
        "Slurm takes no more jobs for now (QOSMaxSubmitJobPerUserLimit); submitting again until one "
        "has ended.\n"
    )


REFUSALS = {
    "never possible": "echo 'sbatch: error: QOSMaxWallDurationPerJobLimit' >&2; exit 1",
    "another fault": "echo 'sbatch: error: invalid partition specified: gpuu' >&2; exit 3",
    "no answer": "echo 'sbatch: error: Unable to contact slurm controller' >&2; exit 1",
    "no id": "echo 'Thank you'",
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_other_refusals_are_the_executor_s(queue: Path, refusal: str) -> None:
    done = submit(queue, REFUSALS[refusal])
    assert (done.returncode, done.stdout) == (3 if refusal == "another fault" else 1, "")
    assert done.stderr
    calls = (queue / "calls").read_text().splitlines()
    assert len(calls) == (3 if refusal == "no answer" else 1)


def test_a_script_is_passed_on(queue: Path) -> None:
    done = submit(queue, 'cat > "$QUEUE/script"; echo 17', "/dev/stdin")
    assert done.stdout == "17\n"
    assert (queue / "script").read_text() == "#!/bin/sh\n"
