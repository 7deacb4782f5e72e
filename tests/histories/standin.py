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
    from evaluation.scoring import choices, perplexity, probes
    from evaluation.scoring.session import Session

    completeness._SETTLE_SECONDS = 0.001
    real = {
        "model": Session.model,
        "engine": Session.engine,
        "requests": choices.score_requests,
        "blocks": perplexity.score_blocks,
        "answers": probes.generate,
    }
    Session.model = property(lambda own: _model(own, real["model"]))
    Session.engine = property(lambda own: _model(own, real["engine"]))
    choices.score_requests = _counted(score_requests, real["requests"], "tier3", _request)
    perplexity.score_blocks = _counted(score_blocks, real["blocks"], "tier2", _block)
    probes.generate = _counted(generate, real["answers"], "tier4", _prompt)
    for name in ("rename", "replace"):
        setattr(os, name, _moment(getattr(os, name)))


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


@dataclasses.dataclass
class Model:
    """What stands for a model and for its engine."""

    content: str
    state: str
    dtype: str
    tokens_processed: int = 0

    def dice(self, tier: str, *asked: Any) -> float:
        """A number in [0, 1) that all that was asked decides."""
        from evaluation.settings.tiers import TIERS

        text = json.dumps([self.content, self.dtype, TIERS[tier].protocol, *asked])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest()) / 2**48


def _model(session: Any, real: Any) -> Any:
    if "HISTORIES_REAL" in os.environ:
        name = real.attrname
        if name not in session.__dict__:
            session.__dict__[name] = real.func(session)
            session.__dict__[name].standing_for = _stand(session)
        return session.__dict__[name]
    if "standing" not in session.__dict__:
        session.__dict__["standing"] = _stand(session)
        session.check_unchanged()
    return session.__dict__["standing"]


def _stand(session: Any) -> Model:
    path = session.checkpoint.path
    files = sorted(p for p in path.rglob("*") if p.is_file())
    content = hashlib.sha256(b"".join(p.read_bytes() for p in files if p.suffix == ".safetensors"))
    state = [(str(p.relative_to(path)), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    return Model(content.hexdigest(), repr(state), session.numerics.dtype_name)


def score_requests(model: Model, requests: Sequence[Any], **_: Any) -> list[Any]:
    from evaluation.scoring.engine.window import Score

    scores = []
    for request in requests:
        draw = model.dice("tier3", list(request.context), list(request.continuation))
        scores.append(Score(-len(request.continuation) * (1 + 3 * draw), draw < 0.2))
        model.tokens_processed += len(request.context) + len(request.continuation)
    return scores


def score_blocks(model: Model, tokens: Any, starts: Any = None, **_: Any) -> Any:
    blocks, length = tokens.shape
    begins = np.zeros((blocks, length), dtype=bool)
    begins[:, 0] = True
    if starts is not None:
        begins.reshape(-1)[starts.numpy()] = True
    scored = length - begins.sum(axis=1)
    each = [model.dice("tier2", row, starts is None) for row in tokens.tolist()]
    model.tokens_processed += blocks * length
    return scored * (2.5 + np.array(each)), scored


def generate(model: Model, requests: Sequence[Any], stopping: Any, **_: Any) -> list[Any]:
    from evaluation.scoring.engine.generation import Answer

    answers = []
    for request in requests:
        asked = (list(request.tokens), request.max_new_tokens, list(stopping.strings))
        length = 1 + int(model.dice("tier4", *asked) * (request.max_new_tokens - 1))
        tokens = [40 + int(200 * model.dice("tier4", *asked, place)) for place in range(length)]
        answers.append(Answer(stopping.decode(tokens), tuple(tokens), "eos"))
    return answers


def _request(asked: Any) -> Any:
    return list(asked.context), list(asked.continuation)


def _block(asked: Any) -> Any:
    return asked.tolist()


def _prompt(asked: Any) -> Any:
    return list(asked.tokens), asked.max_new_tokens


def _counted(
    stand: Callable[..., Any], real: Callable[..., Any], tier: str, plain: Callable[[Any], Any]
) -> Callable[..., Any]:
    """Counts what is scored: a slice or task as a whole, a prompt by itself."""

    def counting(model: Any, asked: Any, *others: Any, **named: Any) -> Any:
        standing = model if isinstance(model, Model) else model.standing_for
        units = [plain(one) for one in asked]
        # What else decides: where documents start, or when an answer ends.
        rest = [sorted(other.strings) for other in others if hasattr(other, "strings")]
        rest += [other.tolist() for other in others if hasattr(other, "tolist")]
        name = named.get("progress") or ", ".join(one.id for one in asked)
        _count(standing, tier, name, [[u, rest] for u in units] if tier == "tier4" else [units])
        return (stand if model is standing else real)(model, asked, *others, **named)

    return counting


def _count(model: Model, tier: str, name: str, items: list[Any]) -> None:
    from evaluation.settings.tiers import TIERS

    place = os.environ.get("HISTORIES_COUNTS")
    if not place:
        return
    with open(place, "a", encoding="utf-8") as file:
        for item in items:
            text = json.dumps([model.content, model.state, model.dtype, item])
            key = hashlib.sha256(f"{TIERS[tier].protocol} {text}".encode()).hexdigest()[:16]
            file.write(json.dumps({"tier": tier, "name": name, "key": key}) + "\n")


def _moment(rename: Callable[..., None]) -> Callable[..., None]:
    """A file that is renamed into place is a moment at which accidents happen: before, or after."""

    def renaming(*arguments: Any, **named: Any) -> None:
        accident = os.environ.get("HISTORIES_ACCIDENT")
        if accident is None:
            return rename(*arguments, **named)
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
