"""Keep what a task asks of a model as flat arrays, so that it is not made again for each checkpoint.

To parse 14,042 questions, fit them into the window and sort their inputs takes two seconds, for which a
GPU waits. So the first job that scores a task writes the result into the shared cache, and others map it:

    <cache>/plans/<task>/<fingerprint of the questions, the window and this code>.safetensors

No locks are needed: a file is renamed once it is complete, and jobs that make the same plan write the
same file. If a file cannot be read or written, the job logs a warning and plans for itself.
"""

import functools
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from evaluation.files import atomic_path, remove_oldest
from evaluation.fingerprints import file_checksum, fingerprint
from evaluation.prefill import caches
from evaluation.prefill.caches import TaskCache, TokenizedQuestion
from evaluation.scoring.engine import packed_rows, tries, window
from evaluation.scoring.engine.packed_rows import Plan, plan_requests
from evaluation.scoring.engine.tries import Ints, Trie
from evaluation.scoring.engine.window import Request, fit_requests
from evaluation.wording import reason_of

log = logging.getLogger(__name__)

FOLDER = "plans"
"""Folder in the shared cache."""
LEAST = 2000
"""Least requests of a task whose plan is kept: fewer are planned in 0.1 s."""
MOST = 8
"""Largest number of files of one task; the oldest ones are deleted."""


@dataclass(frozen=True)
class FitWindow:
    """What requests are fitted to: see `fit_requests`."""

    max_length: int
    prefix_token: int | None
    bos: int | None


@dataclass(frozen=True)
class TaskPlan:
    """Questions by key, and their requests: of each its candidates, then its unconditional ones.

    `truncated` counts contexts.
    """

    keys: Sequence[str]
    ids: Sequence[str]
    candidates: Ints  # (questions,)
    unconditional: Ints  # (questions,)
    truncated: Ints  # (questions,)
    requests: Plan


def plan_questions(questions: Mapping[str, TokenizedQuestion], window: FitWindow) -> TaskPlan:
    """Fit the requests of questions into the window, and plan them.

    Raises:
        ScoringError: When a question cannot be scored; it names the item.
    """
    fit = functools.partial(
        fit_requests, max_length=window.max_length, prefix_token=window.prefix_token, bos=window.bos
    )
    fitted = [fit(_requests(item)) for item in questions.values()]
    return TaskPlan(
        keys=list(questions),
        ids=[item.id for item in questions.values()],
        candidates=np.array([len(item.candidates) for item in questions.values()]),
        unconditional=np.array([len(item.unconditional or ()) for item in questions.values()]),
        truncated=np.array([part.truncated for part in fitted]),
        requests=plan_requests([request for part in fitted for request in part.requests]),
    )


def _requests(item: TokenizedQuestion) -> list[Request]:
    return [
        Request(
            item.contexts[candidate.context].tokens,
            candidate.tokens,
            _name(item.id, place, len(item.candidates)),
        )
        for place, candidate in enumerate((*item.candidates, *(item.unconditional or ())))
    ]


def _name(item: str, place: int, candidates: int) -> str:
    if place < candidates:
        return f"{item}, candidate {place}"
    return f"{item}, unconditional candidate {place - candidates}"


class KeptPlan:
    """The plan of one task, read from the shared cache if it is there."""

    def __init__(self, folder: Path, cache: TaskCache, window: FitWindow) -> None:
        self._cache, self._window = cache, window
        name = fingerprint([_code(), cache.meta["checksum"], *astuple(window)])
        self.path = folder / f"{name}.safetensors"

    @functools.cached_property
    def keys(self) -> Sequence[str]:
        """Return the keys of all questions, each once."""
        return self._kept.keys if self._kept else list(dict.fromkeys(self._cache.keys))

    def of(self, keys: Sequence[str]) -> TaskPlan:
        """Return the plan of some questions; keep that of all of them.

        Raises:
            CacheError: When a line of the task's files is damaged.
            ScoringError: When a question cannot be scored; it names the item.
        """
        are_all = len(keys) == len(self.keys)
        if self._kept and are_all:
            return self._kept
        questions = dict(zip(self._cache.keys, self._cache.items, strict=True))
        plan = plan_questions({key: questions[key] for key in keys}, self._window)
        if are_all and len(plan.requests) >= LEAST:
            self._keep(plan)
        return plan

    @functools.cached_property
    def _kept(self) -> TaskPlan | None:
        try:
            return _read(self.path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, SafetensorError) as error:
            self._warn("read", error)
            return None

    def _keep(self, plan: TaskPlan) -> None:
        try:
            with atomic_path(self.path) as temporary:
                _write(temporary, plan)
        except OSError as error:
            self._warn("written", error)
            return
        remove_oldest(self.path.parent.glob("*.safetensors"), most=MOST)

    def _warn(self, what: str, error: Exception) -> None:
        log.warning(
            "%s cannot be %s (%s); this job plans the task for itself, which takes seconds and gives "
            "the same numbers; correct the folder, or delete it",
            self.path,
            what,
            reason_of(error),
        )


@functools.cache
def _code() -> list[str]:
    """Return checksums of the code that decides what a plan holds."""
    modules = (__file__, caches.__file__, packed_rows.__file__, tries.__file__, window.__file__)
    return [file_checksum(Path(path)) for path in modules]


def _write(path: Path, plan: TaskPlan) -> None:
    trie, text = plan.requests.trie, json.dumps([plan.keys, plan.ids]).encode()
    arrays: dict[str, NDArray[Any]] = {
        "text": np.frombuffer(text, np.uint8),
        "questions": np.stack([plan.candidates, plan.unconditional, plan.truncated]),
        "tokens": trie.tokens.astype(np.uint32),
        "inputs": np.stack([trie.starts, trie.lengths, trie.shared]),
        "place": trie.place,
        "targets": plan.requests.targets,
        "sizes": plan.requests.sizes,
    }
    save_file(arrays, path, {"checksum": _checksum(arrays)})


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def _read(path: Path) -> TaskPlan:
    """Read a plan; raise ValueError for a damaged one."""
    with safe_open(path, framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if (file.metadata() or {}).get("checksum") != _checksum(arrays):
            raise ValueError("its checksum is not that of its content")
    keys, ids = json.loads(arrays["text"].tobytes())
    candidates, unconditional, truncated = arrays["questions"]
    starts, lengths, shared = arrays["inputs"]
    trie = Trie(arrays["tokens"], starts, lengths, shared, arrays["place"])
    stops = np.cumsum(candidates + unconditional)

    def name(index: int) -> str:
        number = int(np.searchsorted(stops, index, side="right"))
        count = int(candidates[number])
        begin = int(stops[number]) - count - int(unconditional[number])
        return _name(ids[number], index - begin, count)

    requests = Plan(trie, arrays["targets"], arrays["sizes"], name)
    return TaskPlan(keys, ids, candidates, unconditional, truncated, requests)
