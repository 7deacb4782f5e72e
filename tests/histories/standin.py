"""A stand-in engine that answers in milliseconds, what it was asked, and accidents at a given moment.

It lives in the warm server only, by replacing what the product's jobs call; this file is all that
knows their names. Its numbers depend on the bytes of the checkpoint, on what is asked, on dtype and
on the tier's protocol, and on nothing else: whatever should change a result changes it.

What a run is told, by its environment:

    HISTORIES_COUNTS      a file that gets a line for each item that is scored, each prompt answered
    HISTORIES_PROTOCOLS   JSON of protocol constants that were raised, e.g. {"tier3": "tier3-2"}
    HISTORIES_ACCIDENT    "KILL 12": all processes are killed at the 12th renaming of a file;
                          "TERM 12": Snakemake is told to stop then
    HISTORIES_REAL        anything: the engine is the real one (what it scores is counted likewise)
"""

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

_MOMENTS = mmap.mmap(-1, 8)
"""How many files this run has renamed so far, in all its processes."""


def install() -> None:
    """In the server, once: replaces the calls."""
    from evaluation.checkpoints import completeness
    from evaluation.scoring import session
    from evaluation.scoring.engine.backend import EngineBackend

    completeness._SETTLE_SECONDS = 0.001

    def backend(scoring: Any, checkpoint: Any, loaded: Callable[[], None], *_: Any) -> Counting:
        stand = StandIn(scoring, checkpoint, loaded)
        is_real = "HISTORIES_REAL" in os.environ
        return Counting(EngineBackend(scoring, checkpoint, loaded) if is_real else stand, stand)

    session.EngineBackend = backend
    _install_verification()
    for name in ("rename", "replace"):
        setattr(os, name, _moment(getattr(os, name)))


def _install_verification() -> None:
    """Verifiers of answers run where they are asked, without a pool, and what they say is counted."""
    from evaluation.grading import judging, verdicts
    from evaluation.verification import golds
    from evaluation.verification.pool import verify_all
    from evaluation.verification.registry import VERIFIERS

    def verify(jobs: Any, **named: Any) -> Any:
        if "HISTORIES_REAL" in os.environ:
            return verify_all(jobs, **named)
        return enumerate(VERIFIERS[job[0].kind](*job) for job in jobs)

    def take(view: Any, key: str, verdict: Any) -> None:
        store = view._store.folder.name
        _write_count("verdict", view._item, [store, view._item, view._settings, key])
        kept(view, key, verdict)

    kept, verdicts._View.take = verdicts._View.take, take
    judging.verify_all = golds.verify_all = verify


def begin() -> None:
    """In each fork, before anything else."""
    from evaluation import protocol
    from evaluation.settings import tiers

    for name, version in json.loads(os.environ.get("HISTORIES_PROTOCOLS", "{}")).items():
        if name in tiers.TIERS:
            tiers.TIERS[name] = dataclasses.replace(tiers.TIERS[name], protocol=version)
        else:
            assert hasattr(protocol, name), name
            setattr(protocol, name, version)
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
        self._path, self._loaded = checkpoint.path, loaded
        self._tokens = 0

    @functools.cached_property
    def content(self) -> str:
        files = self._files()
        weights = b"".join(p.read_bytes() for p in files if p.suffix == ".safetensors")
        self._loaded()
        return hashlib.sha256(weights).hexdigest()

    @property
    def state(self) -> str:
        return repr(
            [
                (str(p.relative_to(self._path)), p.stat().st_size, p.stat().st_mtime_ns)
                for p in self._files()
            ]
        )

    @property
    def tokens_processed(self) -> int:
        assert self.content
        return self._tokens

    def _files(self) -> list[Path]:
        return sorted(path for path in self._path.rglob("*") if path.is_file())

    def dice(self, tier: str, *asked: Any) -> float:
        """A number in [0, 1) that all that was asked decides."""
        from evaluation.settings.tiers import TIERS

        text = json.dumps([self.content, self.dtype, TIERS[tier].protocol, *asked])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest()) / 2**48

    def log_likelihoods(self, requests: Sequence[Any], *, label: str) -> list[Any]:
        from evaluation.scoring.engine.window import Score

        scores = []
        for request in requests:
            draw = self.dice("tier3", list(request.context), list(request.continuation))
            scores.append(Score(-len(request.continuation) * (1 + 3 * draw), draw < 0.2))
            self._tokens += len(request.context) + len(request.continuation)
        return scores

    def block_nats(self, tokens: Any, document_starts: Any, *, label: str) -> Any:
        blocks, length = tokens.shape
        begins = np.zeros((blocks, length), dtype=bool)
        begins[:, 0] = True
        if document_starts is not None:
            begins.reshape(-1)[document_starts.numpy()] = True
        scored = length - begins.sum(axis=1)
        each = [self.dice("tier2", row, document_starts is None) for row in tokens.tolist()]
        self._tokens += blocks * length
        return scored * (2.5 + np.array(each)), scored

    def answers(self, requests: Sequence[Any], stopping: Any, *, vocabulary: int) -> Any:
        from evaluation.scoring.answers import AnswerKey

        for index, request in enumerate(requests):
            for sample in request.samples:
                yield {AnswerKey(index, sample): self._answer(request, sample, stopping)}

    def _answer(self, request: Any, sample: int, stopping: Any) -> Any:
        """Greedy ones depend on the prompt alone, samples on index and settings too."""
        from evaluation.scoring.answers import StopSearch

        asked: list[Any] = [list(request.tokens)]
        if request.sampling is not None and request.sampling.temperature:
            asked += [sample, request.sampling.model_dump(exclude={"n"})]
        search, tokens = StopSearch(stopping), list[int]()
        while len(tokens) < request.max_new_tokens:
            place = len(tokens)
            if self.dice(tier_of(request), *asked, "end", place) < 0.1:
                return stopping.answer(tokens, "eos")
            tokens.append(40 + int(200 * self.dice(tier_of(request), *asked, place)))
            if search.reached(tokens):
                break
        return stopping.answer(tokens, "length")


class Counting:
    """A backend that counts what it is asked: a slice or task as a whole, a prompt by itself."""

    def __init__(self, backend: Any, stand: StandIn) -> None:
        self._backend, self._stand = backend, stand

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def log_likelihoods(self, requests: Sequence[Any], *, label: str) -> Any:
        items = [[list(one.context), list(one.continuation)] for one in requests]
        _count(self._stand, "tier3", label, [items])
        return self._backend.log_likelihoods(requests, label=label)

    def block_nats(self, tokens: Any, document_starts: Any, *, label: str) -> Any:
        starts = None if document_starts is None else document_starts.tolist()
        _count(self._stand, "tier2", label, [[tokens.tolist(), starts]])
        return self._backend.block_nats(tokens, document_starts, label=label)

    def answers(self, requests: Sequence[Any], stopping: Any, *, vocabulary: int) -> Any:
        for batch in self._backend.answers(requests, stopping, vocabulary=vocabulary):
            for key, answer in batch.items():
                one, tier = requests[key.request], tier_of(requests[key.request])
                item = [list(one.tokens), one.max_new_tokens, sorted(stopping.strings)]
                if tier == "tier5":  # with other stops it may go on, which makes it another
                    about = one.sampling.model_dump(exclude={"n"})
                    item[2:] = [key.sample, about, answer.raw]
                _count(self._stand, tier, one.id, [item])
            yield batch


def tier_of(request: Any) -> str:
    """Probes say nothing of sampling."""
    return "tier4" if request.sampling is None else "tier5"


def _count(model: StandIn, tier: str, name: str, items: list[Any]) -> None:
    from evaluation.settings.tiers import TIERS

    for item in items:
        asked = [model.content, model.state, model.dtype, item]
        _write_count(tier, name, [TIERS[tier].protocol, *asked])


def _write_count(tier: str, name: str, asked: Any) -> None:
    place = os.environ.get("HISTORIES_COUNTS")
    if not place:
        return
    key = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
    with open(place, "a", encoding="utf-8") as file:
        file.write(json.dumps({"tier": tier, "name": name, "key": key}) + "\n")


def _moment(rename: Callable[..., None]) -> Callable[..., None]:
    """A file that is renamed into place is a moment at which accidents happen: before, or after."""

    def renaming(*arguments: Any, **named: Any) -> None:
        accident = os.environ.get("HISTORIES_ACCIDENT")
        if accident is None:
            rename(*arguments, **named)
            return
        kind, moment = accident.split()
        number = int.from_bytes(_MOMENTS[:8]) + 1  # races lose a moment, no more
        _MOMENTS[:] = number.to_bytes(8)
        if number % 2:
            rename(*arguments, **named)
        if number == int(moment):
            if kind == "KILL":
                os.killpg(0, signal.SIGKILL)
            os.kill(int(os.environ["HISTORIES_MAIN"]), signal.SIGTERM)
        if not number % 2:
            rename(*arguments, **named)

    return renaming


def counts(place: Path) -> list[dict[str, Any]]:
    """What was scored, as `HISTORIES_COUNTS` has it."""
    if not place.exists():
        return []
    return [json.loads(line) for line in place.read_text().splitlines()]
