"""The pool: what kills a worker costs one verdict, and no answer holds the others up."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import CacheError
from evaluation.settings.verifiers import Boxed, IFEval, MathVerify
from evaluation.verification.pool import VerifierJob, verify_all
from tests.conftest import ROOT
from tests.verification.sandbox.arena import of_session

MATH = MathVerify(kind="math_verify")
GOOD: VerifierJob = (MATH, {"gold": "5"}, "So it is \\boxed{5}.")


@dataclass
class Deadly:
    """Settings that do harm when the verifier reads them, inside its process."""

    harm: str
    kind: str = "pattern"
    take: str = "first"
    ignore: tuple[str, ...] = ()
    ignore_case: bool = False

    @property
    def pattern(self) -> str:
        if self.harm == "exit":
            os._exit(3)
        elif self.harm == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif self.harm == "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        elif self.harm == "endless":
            while True:
                pass
        elif self.harm == "memory error":
            return "x" * (1 << 33)
        elif self.harm == "growing":
            self.ballast = b"x" * (200 << 20)
            return "x"
        elif self.harm == "raise":
            raise RecursionError("too deep\nand more")
        raise KeyError(self.harm)


def deadly(harm: str) -> VerifierJob:
    settings: Any = Deadly(harm)
    return settings, {"gold": "5"}, "text"


HARMS: dict[str, tuple[float | None, str]] = {
    "exit": (None, "process died (exit code 3)"),
    "segfault": (None, "process died (exit code -11)"),
    "hang": (None, "not done after 10 seconds, in which it had less than 1 seconds of CPU time"),
    "endless": (0.0, "more than 1 seconds of CPU time"),
    "memory error": (0.0, "more than 128 MB of memory"),
    "growing": (0.0, "more than 128 MB of memory"),
    "raise": (None, "RecursionError: too deep and more"),
}
"""Credit and reason: what a text needs beyond the limits is wrong, a fault of machine or library is none."""


def test_harm_costs_one_verdict() -> None:
    jobs = [job for harm in HARMS for job in (deadly(harm), *[GOOD] * 5)]
    found = dict(verify_all(jobs, workers=2, seconds=1, memory_mb=128))
    assert sorted(found) == list(range(len(jobs)))
    for place, (harm, (credit, reason)) in enumerate(HARMS.items()):
        verdict, *others = (found[6 * place + offset] for offset in range(6))
        assert verdict.credit == credit, harm
        assert reason in verdict.reason, harm
        assert [other.credit for other in others] == [1.0] * 5, harm


ODD = {
    "NUL bytes": "\x00" * 1000 + "\\boxed{5}",
    "half characters": "\ud800 \\boxed{5} \udfff",
    "no text": "",
    "a million lines": "\n" * 1_000_000 + "\\boxed{5}",
    "right to left": "\u202e\\boxed{5}",
}


def test_odd_completions_get_verdicts() -> None:
    jobs: list[VerifierJob] = [(Boxed(kind="boxed"), {"gold": "5"}, text) for text in ODD.values()]
    jobs.append((Boxed(kind="boxed"), {"gold": "5"}, "\\boxed{\ud800" + "7" * 50_000 + "}"))
    found = dict(verify_all(jobs, workers=1))
    assert [found[place].credit for place in range(5)] == [1, 1, 0, 1, 1]
    assert found[5].answer is not None
    assert len(found[5].answer.encode()) == 10_000  # raises for half a character


def test_missing_data_stops_all(tmp_path: Path) -> None:
    name = "length_constraints:number_sentences"
    given = {"num_sentences": 2, "relation": "less than"}
    asked = {"prompt": "Write.", "instruction_ids": [name], "arguments": [given]}
    jobs: list[VerifierJob] = [(IFEval(kind="ifeval"), asked, "Text.")] * 3
    with pytest.raises(CacheError, match=f"punkt_tab.* is not in {tmp_path}; run prefill"):
        list(verify_all(jobs, workers=1, nltk_data=tmp_path))


SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs behind itself
from tests.verification.test_pool import deadly, GOOD
from evaluation.verification.pool import verify_all
for number, verdict in verify_all([GOOD, *[deadly("hang")] * 9], workers=2, seconds=500):
    print(number, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_leaves_no_processes(number: signal.Signals) -> None:
    """Also workers that hang and ignore SIGTERM."""
    script = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert script.stdout is not None
    assert script.stdout.readline() == b"0\n"
    assert len(of_session(script.pid)) >= 4  # itself, the process they are copied from, workers
    script.send_signal(number)
    until = time.monotonic() + 120
    while of_session(script.pid) - {script.pid} and time.monotonic() < until:
        time.sleep(0.1)
    script.wait(120)
    script.stdout.close()
    assert not of_session(script.pid)
