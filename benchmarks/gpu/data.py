"""The requests and the text that are measured, as ids in one file of packed JSON.

    tasks.<name>.contexts      distinct contexts
    tasks.<name>.candidates    of each: the number of its context, its ids, the number of its question
    slices.<name>              blocks of ids, and the flat positions where documents begin

`prepare` writes it where the data sets are, `read` needs no more than Python and torch.
"""

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evaluation.errors import SourceError
from evaluation.scoring.engine.window import Request


@dataclass(frozen=True)
class Task:
    """Candidates in the order of their questions; `question[i]` is the one that request i is of."""

    name: str
    requests: list[Request]
    question: list[int]

    @property
    def questions(self) -> int:
        return len(set(self.question))

    def spread(self, count: int) -> "Task":
        """So many of its questions, evenly spread over it; all of them for 0."""
        numbers = sorted(set(self.question))
        if not 0 < count < len(numbers):
            return self
        places = np.linspace(0, len(numbers) - 1, count).round().astype(int)
        chosen = {numbers[place] for place in places}
        kept = [i for i, number in enumerate(self.question) if number in chosen]
        return Task(self.name, [self.requests[i] for i in kept], [self.question[i] for i in kept])


@dataclass(frozen=True)
class Slice:
    """Blocks of text, (blocks, length), and the flat positions where documents begin."""

    name: str
    tokens: torch.Tensor
    starts: torch.Tensor

    def first(self, blocks: int) -> "Slice":
        """So many of its blocks; all of them for 0."""
        if not 0 < blocks < len(self.tokens):
            return self
        inside = self.starts < blocks * self.tokens.shape[1]
        return Slice(self.name, self.tokens[:blocks], self.starts[inside])


@dataclass(frozen=True)
class Data:
    """All of it; `about` says what it was made of."""

    tasks: list[Task]
    slices: list[Slice]
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def highest(self) -> int:
        """The largest id in it."""
        of_tasks = (
            max(max(one.context), max(one.continuation)) for t in self.tasks for one in t.requests
        )
        of_slices = (int(one.tokens.max()) for one in self.slices)
        return max((*of_tasks, *of_slices))


def write(path: Path, data: Data) -> None:
    """Write the file."""
    content = {
        "about": data.about,
        "tasks": {task.name: _distinct(task) for task in data.tasks},
        "slices": {one.name: [one.tokens.tolist(), one.starts.tolist()] for one in data.slices},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(content, separators=(",", ":")).encode()))


def _distinct(task: Task) -> dict[str, Any]:
    contexts: dict[tuple[int, ...], int] = {}
    asked = zip(task.requests, task.question, strict=True)
    rows = [
        [contexts.setdefault(one.context, len(contexts)), one.continuation, number]
        for one, number in asked
    ]
    return {"contexts": list(contexts), "candidates": rows}


def read(path: Path, *, questions: int = 0, blocks: int = 0) -> Data:
    """Read the file, of each task and slice as much as asked for (0: all).

    Raises SourceError where it is missing or is none of `prepare`'s.
    """
    try:
        content = json.loads(gzip.decompress(path.read_bytes()))
        return Data(
            [_task(name, **part).spread(questions) for name, part in content["tasks"].items()],
            [
                Slice(name, *map(torch.tensor, part)).first(blocks)
                for name, part in content["slices"].items()
            ],
            content["about"],
        )
    except FileNotFoundError:
        raise SourceError(
            f"{path}: no such file; make it by `make bench-gpu-data` where the data is, and copy it here"
        ) from None
    except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error) as error:
        raise SourceError(
            f"{path}: not a file of requests ({error}); make it anew by `make bench-gpu-data`"
        ) from None


def _task(
    name: str, contexts: list[list[int]], candidates: list[tuple[int, list[int], int]]
) -> Task:
    shared = [tuple(one) for one in contexts]
    requests = [
        Request(shared[place], tuple(end), f"{name}/{number}") for place, end, number in candidates
    ]
    return Task(name, requests, [number for _, _, number in candidates])


def count_tokens(requests: Sequence[Request]) -> int:
    """Tokens of all inputs one by one, as a loop without sharing would read them."""
    return sum(len(one.context) + len(one.continuation) - 1 for one in requests)
