"""A stand-in engine that answers in milliseconds, what it was asked, and accidents at a given moment.

It lives in the warm server only, by replacing what the product's jobs call; this file is all that
knows their names. Its numbers depend on the bytes of the checkpoint, on what is asked, on dtype and
on the tier's protocol, and on nothing else: whatever should change a result changes it.

What a run is told, by its environment:

    HISTORIES_COUNTS      a file that gets a line for each time that the engine is asked, with a key
                          for each question: a context and a candidate, a block, a sample of a prompt
    HISTORIES_PROTOCOLS   JSON of protocol constants that were raised, e.g. {"tier3": "tier3-2"}
    HISTORIES_PROVIDER    the version of lighteval that is required
    HISTORIES_ACCIDENT    "KILL 12": all processes are killed at the 12th renaming of a file;
                          "MAIN 12": only what was started first is, as a watcher without its
                          Snakemake; "TERM 12": Snakemake is told to stop then; "WAIT 12": everything there
                          waits until somebody has put a file `go` beside the file of counts;
                          "READ 12": the same at the 12th text that is tokenized
    HISTORIES_REAL        anything: the engine is the real one (what it scores is counted likewise)
    HISTORIES_FAULT       anything: the numbers also depend on `generation_batch`, which the workflow
                          does not take for a reason to score again: a planted fault
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import mmap
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.histories.counting import Counting, tier_of, write_count

SETTINGS = ("config.yaml", "model_config.json", "config.json")

_MOMENTS = mmap.mmap(-1, 8)
"""How many files this run has renamed so far, in all its processes."""


def install() -> None:
    """In the server, once: replaces the calls."""
    from evaluation.checkpoints import completeness
    from evaluation.scoring import session
    from evaluation.scoring.engine.backend import EngineBackend

    completeness.SETTLE_SECONDS = 0.001

    def backend(scoring: Any, checkpoint: Any, loaded: Callable[[], None], *_: Any) -> Counting:
        stand = StandIn(scoring, checkpoint, loaded)
        is_real = "HISTORIES_REAL" in os.environ
        return Counting(EngineBackend(scoring, checkpoint, loaded) if is_real else stand, stand)

    session.EngineBackend = backend
    _install_verification()
    for name in ("rename", "replace"):
        setattr(os, name, _moment(getattr(os, name)))
    _install_reading()


def _install_reading() -> None:
    """Each text that is tokenized is a moment, too: sources are being read by then."""
    from evaluation.tokenizers.fast import FastTokenizer

    encode = FastTokenizer._encoded

    def encoding(*arguments: Any, **named: Any) -> Any:
        kind, _, moment = os.environ.get("HISTORIES_ACCIDENT", "").partition(" ")
        if kind == "READ" and _next_moment() == int(moment):
            _wait()
        return encode(*arguments, **named)

    FastTokenizer._encoded = encoding  # type: ignore[method-assign]


def _install_verification() -> None:
    """Verifiers of answers run where they are asked, without a pool, and what they say is counted."""
    from evaluation.grading import verdicts
    from evaluation.settings.checks import CheckSettings
    from evaluation.store import ScoreStore
    from evaluation.verification import golds, registry
    from evaluation.verification.pool import verify_all
    from evaluation.verification.verdicts import Verdict

    def verify(jobs: Any, **named: Any) -> Any:
        if "HISTORIES_REAL" in os.environ:
            return verify_all(jobs, **named)
        return enumerate(registry.verify(*job) for job in jobs)

    def judge(jobs: Any, **named: Any) -> Any:
        limits = named["seconds"], named["memory_mb"]
        for job, verdict in zip(jobs := list(jobs), verify(jobs, **named), strict=True):
            is_real = "HISTORIES_REAL" in os.environ or isinstance(job[0], CheckSettings)
            lacks = None if is_real else _lacks(job[2], *limits)
            yield (verdict[0], Verdict(credit=None, reason=lacks)) if lacks else verdict

    def keep(store: Any, item: str, settings: Any, found: Any) -> Any:
        for key in found.table["key"].to_pylist() if item.startswith("verdicts-") else ():
            write_count("verdict", item, [[store.folder.name, item, settings, key]])
        return stored(store, item, settings, found)

    stored, ScoreStore.put_part = ScoreStore.put_part, keep  # type: ignore[method-assign]
    verdicts.verify_all, golds.verify_all = judge, verify


def _lacks(completion: str, seconds: float, memory_mb: int) -> str | None:
    """What a verifier of this completion would not have had enough of, if anything."""
    draw = hashlib.blake2b(completion.encode(), digest_size=2).digest()
    if draw[0] / 32 > seconds:
        return f"the verifier was not done after {seconds:g} seconds"
    if draw[1] * 4 > memory_mb:
        return f"the verifier took more than {memory_mb} MB of memory"
    return None


def begin() -> None:
    """In each fork, before anything else."""
    from evaluation.results.deltas_file import StepDeltas
    from evaluation.results.stage_files import TaskQuality
    from evaluation.settings import protocol, provided, tiers

    versions = {**provided.VERSIONS, "lighteval": os.environ.get("HISTORIES_PROVIDER", "")}
    provided.VERSIONS = versions  # type: ignore[misc]
    for name, version in json.loads(os.environ.get("HISTORIES_PROTOCOLS", "{}")).items():
        if name in tiers.TIERS:
            tiers.TIERS[name] = dataclasses.replace(
                tiers.TIERS[name], protocol=version, stored=None
            )
        else:
            assert hasattr(protocol, name), name
            setattr(protocol, name, version)
    StepDeltas.VERSION = ("bridge", protocol.BRIDGE)
    TaskQuality.VERSION = ("report", protocol.REPORT)
    time.perf_counter = lambda: 0.0  # how long something took is no difference
    if "HISTORIES_MAIN" not in os.environ:  # Snakemake itself, or a command by hand
        os.environ["HISTORIES_MAIN"] = str(os.getpid())
        _MOMENTS[:] = bytes(8)


class StandIn:
    """What stands for a model and for its engine."""

    device = "cpu"
    row_tokens = 1024

    def __init__(self, scoring: Any, checkpoint: Any, loaded: Callable[[], None]) -> None:
        self.dtype = "float32" if scoring.dtype == "auto" else scoring.dtype
        self._folder = checkpoint.path
        self._loaded = loaded
        self._tokens = 0
        self._fault = [scoring.generation_batch] if "HISTORIES_FAULT" in os.environ else []

    @functools.cached_property
    def content(self) -> str:
        content = _content(self._folder)
        self._loaded()
        return content

    @property
    def state(self) -> str:
        """Names, sizes and times of the files whose content counts."""
        return repr(
            [
                (str(p.relative_to(self._folder)), p.stat().st_size, p.stat().st_mtime_ns)
                for p in _files(self._folder)
            ]
        )

    @property
    def tokens_processed(self) -> int:
        assert self.content
        return self._tokens

    def dice(self, tier: str, *asked: Any) -> float:
        """A number in [0, 1) that all that was asked decides."""
        from evaluation.settings.tiers import TIERS

        text = json.dumps([self.content, self.dtype, TIERS[tier].protocol, *asked, *self._fault])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest()) / 2**48

    def log_likelihoods(self, requests: Sequence[Any]) -> list[Any]:
        from evaluation.scoring.engine.window import Score

        scores = []
        for request in requests:
            draw = self.dice("tier3", list(request.context), list(request.continuation))
            scores.append(Score(-len(request.continuation) * (1 + 3 * draw), draw < 0.2))
            self._tokens += len(request.context) + len(request.continuation)
        return scores

    def block_nats(self, tokens: Any, document_starts: Any) -> Any:
        from evaluation.metrics.positions import bin_starts
        from evaluation.scoring.engine.window import BlockNats

        blocks, length = tokens.shape
        begins = np.zeros((blocks, length), dtype=bool)
        begins[:, 0] = True
        if document_starts is not None:
            begins.reshape(-1)[document_starts.numpy()] = True
        scored = length - begins.sum(axis=1)
        each = [self.dice("tier2", row, document_starts is None) for row in tokens.tolist()]
        self._tokens += blocks * length
        nats = scored * (2.5 + np.array(each))
        first = np.eye(1, len(bin_starts(length)), dtype=int)  # all in the first bin
        return BlockNats(nats, scored, nats[:, None] * first, scored[:, None] * first)

    def answers(self, requests: Sequence[Any], *, vocabulary: int) -> Any:
        from evaluation.scoring.answers import AnswerKey

        for index, request in enumerate(requests):
            for sample in request.samples:
                yield {AnswerKey(index, sample): self._answer(request, sample, request.stopping)}

    def _answer(self, request: Any, sample: int, stopping: Any) -> Any:
        """Greedy ones depend on the prompt alone, samples on index and settings too."""
        from evaluation.scoring.answers import StopSearch

        asked: list[Any] = [list(request.tokens)]
        if request.sampling is not None and request.sampling.temperature:
            asked += [sample, request.sampling.model_dump(exclude={"n"})]
        search, tokens = StopSearch(stopping, request.tokens), list[int]()
        while len(tokens) < request.max_new_tokens:
            place = len(tokens)
            if self.dice(tier_of(request), *asked, "end", place) < 0.1:
                return stopping.answer(request.tokens, tokens, "eos")
            tokens.append(40 + int(200 * self.dice(tier_of(request), *asked, place)))
            if search.reached(tokens):
                break
        return stopping.answer(request.tokens, tokens, "length")


def _files(folder: Path) -> list[Path]:
    """Weights and configuration; what counts tokens or generates by default is neither."""
    there = (path for path in folder.rglob("*") if path.is_file())
    return sorted(p for p in there if p.suffix == ".safetensors" or p.name in SETTINGS)


def _content(folder: Path) -> str:
    read = b"".join(p.read_bytes() for p in _files(folder) if p.name != "config.yaml")
    return hashlib.sha256(read).hexdigest()


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _next_moment() -> int:
    number = int.from_bytes(_MOMENTS[:8]) + 1  # races lose a moment, no more
    _MOMENTS[:] = number.to_bytes(8)
    return number


def _wait() -> None:
    """Until whoever started the run has done something to the disk."""
    folder = Path(os.environ["HISTORIES_COUNTS"]).parent
    (folder / "waiting").touch()
    while not (folder / "go").exists():
        time.sleep(0.005)


def _moment(rename: Callable[..., None]) -> Callable[..., None]:
    """A file that is renamed into place is a moment at which accidents happen: before, or after."""

    def renaming(*arguments: Any, **named: Any) -> None:
        kind, _, moment = os.environ.get("HISTORIES_ACCIDENT", "READ").partition(" ")
        if kind == "READ":
            rename(*arguments, **named)
            return
        number = _next_moment()
        if number % 2:
            rename(*arguments, **named)
        if number == int(moment):
            if kind in ("KILL", "MAIN"):
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                    os.killpg(os.getpgid(int(os.environ["HISTORIES_MAIN"])), signal.SIGKILL)
            if kind == "KILL":
                os.killpg(0, signal.SIGKILL)  # of another group, if a watcher began it
            elif kind == "WAIT":
                _wait()
            elif kind == "TERM":
                os.kill(int(os.environ["HISTORIES_MAIN"]), signal.SIGTERM)
        if not number % 2:
            rename(*arguments, **named)

    return renaming
