"""The requests and the text that are measured, as ids in one small file.

    <task>.contexts, .context_lengths     distinct contexts, one after the other
    <task>.ends, .end_lengths             candidates, likewise
    <task>.context, .question             of each candidate: which context, which question
    slice.<name>.tokens, .starts          blocks (blocks, length); flat positions of documents

`prepare` writes it where the data sets are, `read` needs numpy alone.
"""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evaluation.errors import SourceError
from evaluation.scoring.engine.window import Request

_SLICE = "slice."
_PARTS = ("contexts", "context_lengths", "ends", "end_lengths", "context", "question")


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
    """Writes the file; ids above 65,535 take four bytes."""
    narrow = np.uint16 if data.highest < 1 << 16 else np.uint32
    arrays: dict[str, Any] = {"about": np.frombuffer(json.dumps(data.about).encode(), np.uint8)}
    for task in data.tasks:
        arrays |= {f"{task.name}.{key}": value for key, value in _arrays(task, narrow).items()}
    for piece in data.slices:
        arrays[f"{_SLICE}{piece.name}.tokens"] = piece.tokens.numpy().astype(narrow)
        arrays[f"{_SLICE}{piece.name}.starts"] = piece.starts.numpy().astype(np.int64)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def _arrays(task: Task, narrow: type) -> dict[str, Any]:
    contexts: dict[tuple[int, ...], int] = {}
    place = [contexts.setdefault(one.context, len(contexts)) for one in task.requests]
    ends = [one.continuation for one in task.requests]
    return {
        "contexts": np.concatenate([np.array(one, dtype=narrow) for one in contexts]),
        "context_lengths": np.array([len(one) for one in contexts], dtype=np.int32),
        "ends": np.concatenate([np.array(one, dtype=narrow) for one in ends]),
        "end_lengths": np.array([len(one) for one in ends], dtype=np.int32),
        "context": np.array(place, dtype=np.int32),
        "question": np.array(task.question, dtype=np.int32),
    }


def read(path: Path, *, questions: int = 0, blocks: int = 0) -> Data:
    """Reads the file, of each task and slice as much as asked for (0: all).

    Raises SourceError where it is missing or is none of `prepare`'s.
    """
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
        tasks = {name.rpartition(".")[0]: None for name in arrays if not name.startswith(_SLICE)}
        slices = {name.rpartition(".")[0]: None for name in arrays if name.startswith(_SLICE)}
        found = Data(
            [_task(name, arrays).spread(questions) for name in tasks],
            [_slice(name, arrays).first(blocks) for name in slices],
            about,
        )
    except FileNotFoundError:
        raise SourceError(
            f"{path}: no such file; make it by `make bench-gpu-data` where the data is, and copy it here"
        ) from None
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise SourceError(
            f"{path}: not a file of requests ({error}); make it anew by `make bench-gpu-data`"
        ) from None
    return found


def _task(name: str, arrays: dict[str, Any]) -> Task:
    part = {key: arrays[f"{name}.{key}"] for key in _PARTS}
    contexts = _divided(part["contexts"], part["context_lengths"])
    ends = _divided(part["ends"], part["end_lengths"])
    requests = [
        Request(contexts[place], end, f"{name}/{number}")
        for place, end, number in zip(part["context"], ends, part["question"], strict=True)
    ]
    return Task(name, requests, part["question"].tolist())


def _divided(flat: Any, lengths: Any) -> list[tuple[int, ...]]:
    if int(lengths.sum()) != len(flat):
        raise ValueError("lengths and ids do not fit together")
    return [tuple(part.tolist()) for part in np.split(flat, np.cumsum(lengths)[:-1])]


def _slice(name: str, arrays: dict[str, Any]) -> Slice:
    tokens = torch.from_numpy(arrays[f"{name}.tokens"].astype(np.int64))
    return Slice(name.removeprefix(_SLICE), tokens, torch.from_numpy(arrays[f"{name}.starts"]))


def count_tokens(requests: Sequence[Request]) -> int:
    """Tokens of all inputs one by one, as a loop without sharing would read them."""
    return sum(len(one.context) + len(one.continuation) - 1 for one in requests)
