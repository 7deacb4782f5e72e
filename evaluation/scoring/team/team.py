"""The followers of a team, as the leader sees them: told what to do, watched, and ended.

A process that dies leaves the others waiting for it: on CPU their connections break, on a GPU nothing
does. So whatever ends a follower ends the leader's pass, by a sentence: raised where the pass comes
back, else, after a while, as the last thing that the leader says.
"""

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import cast

from evaluation import errors
from evaluation.errors import EvaluationError, ScoringError
from evaluation.exit_codes import report
from evaluation.scoring.team.messages import Call, Done, Failed, Joining, receive, send
from evaluation.settings.computing import RANKS

MODULE = "evaluation.scoring.team.follower"
GATHERED = 1.5
"""Seconds in which those that fail because one has failed do so too; the first cause is told."""
READY = 600.0
"""Seconds in which a follower has to be there: its libraries lie on a parallel file system."""
STUCK = 20.0
"""Seconds that the leader's pass may go on without a follower before the process is ended."""

_OTHERS = "what is scored is stored: run again, and look at the memory and the health of the node"


class Follower:
    """A process of the team; `failure` is None as long as it does what it is told."""

    def __init__(self, rank: int, gpu: str | None, threads: int) -> None:
        environment = {"OMP_NUM_THREADS": str(threads), **os.environ, "TQDM_DISABLE": "1"}
        if gpu is not None:
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        self.rank = rank
        self.done = threading.Semaphore(0)
        self.failure: Failed | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def tell(self, message: object) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # whoever watches it will say so
            send(self.process.stdin, message)

    def listen(self) -> Failed:
        """Counts what it has done, until it fails."""
        assert self.process.stdout is not None
        try:
            while isinstance(message := receive(self.process.stdout), Done):
                self.done.release()
        except EOFError:
            return Failed("", "")
        return cast(Failed, message)

    def close(self) -> None:
        """After its end, and once nobody listens to it any more."""
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()


class Team:
    """All followers of this process, which is rank 0; there is one team at a time."""

    def __init__(self, joinings: Sequence[Joining], gpus: Sequence[str | None]) -> None:
        self._ranks = len(joinings) + 1
        self._patience = joinings[0].patience
        self._is_ending = False
        self._in_call = threading.Event()
        self._failed = threading.Event()
        threads = max(1, len(os.sched_getaffinity(0)) // self._ranks)
        self._followers = [
            Follower(joining.rank, gpu, threads)
            for joining, gpu in zip(joinings, gpus, strict=True)
        ]
        atexit.register(self.end)
        self._watching = [
            threading.Thread(target=self._watch, args=(follower,), daemon=True)
            for follower in self._followers
        ]
        for thread, follower, joining in zip(
            self._watching, self._followers, joinings, strict=True
        ):
            thread.start()
            follower.tell(joining)
        try:
            self._confirm(READY)
        except BaseException:
            self.end()
            raise

    @contextlib.contextmanager
    def calling(self, call: Call) -> Iterator[None]:
        """All followers call it while the leader does in the block; ends when all have.

        Raises:
            EvaluationError: the block's own, or what a follower has failed with.
        """
        self._in_call.set()
        try:
            if self._failed.is_set():  # since the last call: on a GPU a pass would wait for ever
                raise self._reason()
            for follower in self._followers:
                follower.tell(call)
            try:
                yield
            except RuntimeError as error:  # so do broken connections end a pass
                if not self._failed.wait(GATHERED):
                    raise self._lost(error) from error
                raise self._reason() from error
            self._confirm(self._patience)
        finally:
            self._in_call.clear()

    def end(self) -> None:
        self._is_ending = True
        atexit.unregister(self.end)
        for follower in self._followers:
            follower.process.kill()
            follower.process.wait()
        for thread, follower in zip(self._watching, self._followers, strict=True):
            thread.join(timeout=5.0)
            if not thread.is_alive():
                follower.close()

    def _confirm(self, patience: float) -> None:
        end = time.monotonic() + patience
        for follower in self._followers:
            while not follower.done.acquire(timeout=0.05):
                if self._failed.is_set():
                    raise self._reason()
                if time.monotonic() > end:
                    raise ScoringError(
                        f"process {follower.rank + 1} of {self._ranks} of this checkpoint does not "
                        f"answer for {patience:.0f} s; {_OTHERS}"
                    )

    def _watch(self, follower: Follower) -> None:
        """Notes how it fails; ends the leader where its pass does not come back from that."""
        failure = follower.listen()
        if self._is_ending:
            return
        follower.failure = failure
        self._failed.set()
        end = time.monotonic() + STUCK
        while time.monotonic() < end:
            time.sleep(0.1)
            if self._is_ending or not self._in_call.is_set():
                return
        report(str(self._reason()))
        sys.stderr.flush()
        os._exit(1)

    def _reason(self) -> EvaluationError:
        """What has happened: an error of ours, a death, or else what the others made of it."""
        time.sleep(GATHERED)
        failed = [one for one in self._followers if one.failure is not None]
        first = min(failed, key=_order)
        assert first.failure is not None
        name, sentence = first.failure.kind, first.failure.sentence
        if name:
            found: EvaluationError = getattr(errors, name, ScoringError)(sentence)
            return found
        if not sentence:
            sentence = _ended(first.process)
        return ScoringError(
            f"process {first.rank + 1} of {self._ranks} of this checkpoint ({RANKS}) {sentence}; {_OTHERS}"
        )

    def _lost(self, error: RuntimeError) -> Exception:
        """A failure of this process that no follower shares."""
        first = (str(error).splitlines() or [""])[0]
        if "imed out" not in first:
            return error
        return ScoringError(
            f"the {self._ranks} processes of this checkpoint ({RANKS}) have waited for one another for "
            f"{self._patience:.0f} s; {_OTHERS}"
        )


def _order(follower: Follower) -> int:
    assert follower.failure is not None
    if follower.failure.kind:
        return 0
    return 2 if follower.failure.sentence else 1


def _ended(process: "subprocess.Popen[bytes]") -> str:
    try:
        code = process.wait(timeout=5.0)
    except subprocess.TimeoutExpired:
        return "says no more"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"has ended with exit code {code}"
