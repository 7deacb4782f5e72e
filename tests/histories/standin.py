"""A stand-in engine that answers in milliseconds, what it was asked, and accidents at a given moment.

It lives in the warm server only, by replacing what the product's jobs call; this file is all that
knows their names. Its numbers depend on the bytes of the checkpoint, on what is asked, on dtype and
on the tier's protocol, and on nothing else: whatever should change a result changes it.

What a run is told, by its environment:

    HISTORIES_COUNTS      a file that gets a line for each time that the engine is asked, with a key
                          for each question: a context and a candidate, a block, a sample of a prompt
    HISTORIES_PROTOCOLS   JSON of protocol constants that were raised, e.g. {"tier3": "tier3-2"}
    HISTORIES_ACCIDENT    "KILL 12": all processes are killed at the 12th renaming of a file; "TERM 12":
                          Snakemake is told to stop then; "WAIT 12": everything there waits until somebody
                          has put a file `go` beside the file of counts
    HISTORIES_FAULT       anything: the numbers also depend on `generation_batch`, which the workflow
                          does not take for a reason to score again: a planted fault
"""

import dataclasses
import functools
import hashlib
import json
import mmap
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from evaluation.files import write_text

SETTINGS = ("config.yaml", "model_config.json", "config.json")

_MOMENTS = mmap.mmap(-1, 8)
"""How many files this run has renamed so far, in all its processes."""


def install() -> None:
    """In the server, once: replaces the calls."""
    from evaluation.checkpoints import completeness
    from evaluation.grading import verdicts
    from evaluation.scoring import session
    from evaluation.verification import golds, registry

    completeness.SETTLE_SECONDS = 0.001
    _install_scores()
    session.EngineBackend = lambda scoring, checkpoint, loaded, *_: StandIn(
        scoring, checkpoint, loaded
    )
    # Without a pool of processes.
    verdicts.verify_all = golds.verify_all = lambda jobs, **_: enumerate(
        registry.verify(*job) for job in jobs
    )
    _install_charts()
    for name in ("rename", "replace"):
        setattr(os, name, _moment(getattr(os, name)))


def _install_charts() -> None:
    """A chart says what it would show: drawing takes nine tenths of a run, and is not judged here."""
    from evaluation.reporting import charts, rendering

    def drawn(name: str, data: Any, *about: Any, **named: Any) -> Any:
        shown = data.to_csv() if hasattr(data, "to_csv") else repr(data)
        content = {"chart": name, "shows": shown, "about": repr((about, named))}
        return SimpleNamespace(to_dict=lambda **_: dict(content))

    for name in ("heat", "forest", "moves", "curves", "positions"):
        setattr(charts, name, functools.partial(drawn, name))
    charts.write_svg = lambda path, chart: write_text(path, json.dumps(chart.to_dict()))
    rendering._library = lambda: ""


def begin() -> None:
    """In each fork, before anything else."""
    from evaluation.results.deltas_file import StepDeltas
    from evaluation.results.stage_files import TaskQuality
    from evaluation.settings import protocol, tiers

    for name, version in json.loads(os.environ.get("HISTORIES_PROTOCOLS", "{}")).items():
        if name in tiers.TIERS:
            changed = dataclasses.replace(tiers.TIERS[name], protocol=version, stored=None)
            tiers.TIERS[name] = changed
        else:
            assert hasattr(protocol, name), name
            setattr(protocol, name, version)
    StepDeltas.VERSION = ("bridge", protocol.BRIDGE)
    TaskQuality.VERSION = ("report", protocol.REPORT)
    time.perf_counter = lambda: 0.0  # how long something took is no difference
    if "HISTORIES_MAIN" not in os.environ:  # Snakemake itself, or a command by hand
        os.environ["HISTORIES_MAIN"] = str(os.getpid())
        _MOMENTS[:] = bytes(8)


def _install_scores() -> None:
    from evaluation.scoring import choices, perplexity

    choices.score_requests = lambda engine, requests: engine.log_likelihoods(requests)
    perplexity.score_blocks = lambda engine, *blocks: engine.block_nats(*blocks)


class StandIn:
    """What stands for a model and for its engine, and counts what it is asked, question by question."""

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
        weighed = (path for path in _files(self._folder) if path.name != "config.yaml")
        content = hashlib.sha256(b"".join(path.read_bytes() for path in weighed)).hexdigest()
        self._loaded()
        return content

    @property
    def engine(self) -> "StandIn":
        assert self.content
        return self

    @property
    def tokens_processed(self) -> int:
        return self._tokens

    def within_memory(self, run: Callable[[], None]) -> None:
        run()

    def _dice(self, tier: str, *asked: Any) -> float:
        """A number in [0, 1) that all that was asked decides."""
        from evaluation.settings.tiers import TIERS

        text = json.dumps([self.content, self.dtype, TIERS[tier].protocol, *asked, *self._fault])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest()) / 2**48

    def _count(self, tier: str, name: str, items: list[Any]) -> None:
        from evaluation.settings.tiers import TIERS

        about = [TIERS[tier].protocol, self.content, self.dtype]
        write_count(tier, name, [[*about, item] for item in items])

    def log_likelihoods(self, requests: Sequence[Any]) -> list[Any]:
        from evaluation.scoring.engine.rows import Score

        scores, questions = [], dict[str, list[Any]]()
        for one in requests:  # what is stored is a question, with all its candidates
            asked = [list(one.context), list(one.continuation)]
            questions.setdefault(one.name.partition(", ")[0], []).append(asked)
            draw = self._dice("tier3", *asked)
            scores.append(Score(-len(one.continuation) * (1 + 3 * draw), draw < 0.2))
            self._tokens += len(one.context) + len(one.continuation)
        self._count("tier3", "tasks", list(questions.values()))
        return scores

    def block_nats(self, tokens: Any, document_starts: Any) -> Any:
        from evaluation.metrics.positions import bin_starts

        starts = None if document_starts is None else document_starts.tolist()
        self._count("tier2", "slices", [[tokens.tolist(), starts]])
        blocks, length = tokens.shape
        begins = np.zeros((blocks, length), dtype=bool)
        begins[:, 0] = True
        if starts is not None:
            begins.reshape(-1)[starts] = True
        scored = length - begins.sum(axis=1)
        each = [self._dice("tier2", row, document_starts is None) for row in tokens.tolist()]
        self._tokens += blocks * length
        nats = scored * (2.5 + np.array(each))
        first = np.eye(1, len(bin_starts(length)), dtype=int)  # all in the first bin
        return nats[:, None] * first, scored[:, None] * first

    def answers(self, requests: Mapping[Any, Any], *, vocabulary: int) -> Any:
        from evaluation.scoring.completions import GREEDY

        counted: list[Any] = []
        rules = {id(one.stopping): one.stopping for one in requests.values()}
        # Another tokenizer reads other answers.
        texts = {key: rule.decode([], list(range(vocabulary))) for key, rule in rules.items()}
        for key, one in requests.items():
            # All probes are asked with the same sampling, which is no task's.
            tier = "tier4" if one.sampling is GREEDY else "tier5"
            answer, read_as = self._answer(one, tier), texts[id(one.stopping)]
            item = [list(one.tokens), one.max_new_tokens, sorted(one.stopping.strings), read_as]
            if tier == "tier5":  # with other stops it may go on, which makes it another
                about = one.sampling.model_dump(exclude={"n"})
                item = [*item[:2], one.sample, about, answer.raw, read_as]
            if item not in counted:  # one prompt may stand in several rows
                self._count(tier, one.id, [item])
            counted.append(item)
            yield {key: answer}

    def _answer(self, request: Any, tier: str) -> Any:
        """Greedy ones depend on the prompt alone, samples on index and settings too."""
        from evaluation.scoring.answers import StopSearch

        asked: list[Any] = [list(request.tokens)]
        if request.sampling is not None and request.sampling.temperature:
            asked += [request.sample, request.sampling.model_dump(exclude={"n"})]
        search, tokens = StopSearch(request.stopping, request.tokens), list[int]()
        while len(tokens) < request.max_new_tokens:
            place = len(tokens)
            if self._dice(tier, *asked, "end", place) < 0.1:
                return request.stopping.answer(request.tokens, tokens, "eos")
            tokens.append(40 + int(200 * self._dice(tier, *asked, place)))
            if search.reached(tokens):
                break
        return request.stopping.answer(request.tokens, tokens, "length")


def write_count(tier: str, name: str, asked: list[Any]) -> None:
    if place := os.environ.get("HISTORIES_COUNTS"):
        keys = sorted({_digest(json.dumps(one)) for one in asked})
        line = {"tier": tier, "name": name, "keys": keys}
        with open(place, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def counts(place: Path) -> list[dict[str, Any]]:
    """What was scored, as `HISTORIES_COUNTS` has it."""
    return [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _files(folder: Path) -> list[Path]:
    """Weights and configuration; what counts tokens or generates by default is neither."""
    there = (path for path in folder.rglob("*") if path.is_file())
    return sorted(p for p in there if p.suffix == ".safetensors" or p.name in SETTINGS)


def _moment(rename: Callable[..., None]) -> Callable[..., None]:
    """A file that is renamed into place is a moment at which accidents happen: before, or after."""

    def renaming(*arguments: Any, **named: Any) -> None:
        kind, _, moment = os.environ.get("HISTORIES_ACCIDENT", "").partition(" ")
        number = int.from_bytes(_MOMENTS[:8]) + 1  # races lose a moment, no more
        _MOMENTS[:] = number.to_bytes(8)
        if number % 2:
            rename(*arguments, **named)
        if kind and number == int(moment):
            _happen(kind)
        if not number % 2:
            rename(*arguments, **named)

    return renaming


def _happen(kind: str) -> None:
    if kind == "KILL":
        os.killpg(0, signal.SIGKILL)
    elif kind == "TERM":
        os.kill(int(os.environ["HISTORIES_MAIN"]), signal.SIGTERM)
    else:  # until whoever started the run has done something to the disk
        folder = Path(os.environ["HISTORIES_COUNTS"]).parent
        (folder / "waiting").touch()
        while not (folder / "go").exists():
            time.sleep(0.005)
