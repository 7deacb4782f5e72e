"""The contract between this package and a provider's program.

    python -m evaluation.providers.adapters.<provider> REQUEST REPLY

REQUEST is a JSON object with `task`, the provider's name of a task or group, and more for one of two
purposes. REPLY is `{"refused": sentence}`, or as follows.

To render the task: `kind` (`generative` or `choices`), `chat`, `num_fewshot`, `limit`, `mirrors`. The
reply is a line `{"info": …, "documents": […]}`, as `render.TaskInfo`, `Document` and `RankedQuestion`
describe it.

To score completions: `cases` (pairs of a document's `document` and a completion), `seconds` and
`memory_mb`. The reply is a line `{"version": …}` and, as soon as there is one, a line for each case
in order: `{"scores": {metric: …}}` or `{"error": …}`. A score is a number, or a list with one per
instruction. A case that takes longer than `seconds` ends the program by SIGALRM.
"""

import json
import random
import signal
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.processes import limit_memory
from evaluation.providers.mirrors import find_mirror, split_files

START_SECONDS = 600.0
"""Time for the program to import its libraries and build a task for scoring."""

Line = dict[str, Any]

Render = Callable[[Line], tuple[Line, list[Line]]]
"""Takes a request to render; returns the adapter's part of `info`, and the documents."""

Score = Callable[[Line, str], Mapping[str, Any]]
"""Takes a document and a completion; returns scores by metric."""


class RefusedTask(Exception):
    """The task cannot be used; the text is a sentence for the user."""


def main(package: str, render: Render, scorer: Callable[[Line], Score]) -> None:
    """Answer the request of the command line; `package` is the provider's, whose version is reported."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with open(sys.argv[2], "w", encoding="utf-8", buffering=1) as file:

        def put(line: Line) -> None:
            print(json.dumps(line), file=file)

        try:
            if "cases" in request:
                _score(request, scorer, package, put)
            else:
                sources = read_mirrors(request["mirrors"])
                info, documents = render(request)
                about = {"version": version(package), "kind": request["kind"], **sources}
                put({"info": about | info, "documents": documents})
        except (RefusedTask, SourceError) as error:
            put({"refused": str(error)})


def _score(
    request: Line, scorer: Callable[[Line], Score], package: str, put: Callable[[Line], object]
) -> None:
    limit = signal.setitimer  # the kernel ends a program whose metric hangs in native code, too
    _count_computing()
    limit(signal.ITIMER_REAL, START_SECONDS)
    score = scorer(request)
    limit_memory(request["memory_mb"] << 20)
    put({"version": version(package)})
    for document, completion in request["cases"]:
        limit(signal.ITIMER_REAL, request["seconds"])
        try:
            given = score(json.loads(json.dumps(document)), completion)  # metrics write into it
            line: Line = {"scores": {name: _plain(value) for name, value in given.items()}}
        except Exception as error:  # noqa: BLE001 - a provider's metrics raise what they like
            line = {"error": f"{type(error).__name__}: {error}"}
        put(line)


def _count_computing() -> None:
    """Make alarms, by which metrics limit their time, count seconds of computing from now on.

    By the clock, a busy machine would stop right answers, which metrics would count as wrong.
    """
    handle, start = signal.signal, signal.setitimer

    def timer(which: int, *seconds: float) -> Any:
        return start(signal.ITIMER_PROF if which == signal.ITIMER_REAL else which, *seconds)

    def handle_computing(number: int, handler: Any) -> Any:
        return handle(signal.SIGPROF if number == signal.SIGALRM else number, handler)

    signal.setitimer, signal.signal = timer, handle_computing  # type: ignore[assignment]
    signal.alarm = lambda seconds: int(timer(signal.ITIMER_REAL, seconds)[0])


def _plain(value: Any) -> Any:
    """Return numbers in JSON's types; anything else as the name of its type, which is not a score."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return float(value) if isinstance(value, int | float) else f"<{type(value).__name__}>"


def read_mirrors(mirrors: Mapping[str, str]) -> Line:
    """Make `datasets.load_dataset` read from mirrors from now on.

    Returns:
        The part of `info` on the datasets, filled as they are read: `datasets` and `read`.
    """
    import datasets

    from_hub = datasets.load_dataset
    record: Line = {"datasets": {}, "read": []}

    def read(files: list[Path]) -> Any:
        if files[0].is_dir():
            return datasets.load_from_disk(str(files[0]))
        kind = "parquet" if files[0].suffix == ".parquet" else "json"
        names = [str(file) for file in files]
        # In the program's own folder, as there may be no other that may be written.
        return from_hub(kind, data_files=names, split="train", cache_dir="datasets")

    def load(path: str, name: str | None = None, *rest: Any, split: Any = None, **more: Any) -> Any:
        root = find_mirror(path, mirrors)
        record["datasets"][path] = "hub" if root is None else str(root)
        if root is None:
            record["read"].append([path, name, str(split)])
            return from_hub(path, name, *rest, split=split, **more)
        mirror = root

        kept: list[Any] = []

        class Splits(datasets.DatasetDict):  # type: ignore[misc]
            def filter(self, function: Any = None, **_: Any) -> Any:
                kept.append(function)
                return self

            def __missing__(self, wanted: str) -> Any:
                self[wanted] = read(split_files(mirror, path, name, wanted))
                for function in kept:
                    self[wanted] = self[wanted].filter(function)
                record["read"].append([path, name, wanted])
                return self[wanted]

        return Splits() if split is None else Splits()[split]

    datasets.load_dataset = load
    return record


def seed(text: str) -> None:
    """Seed the generators that tasks and metrics draw from, so that two runs draw the same."""
    import numpy as np

    random.seed(text)
    np.random.seed(zlib.crc32(text.encode()))
    if (langdetect := sys.modules.get("langdetect")) is not None:
        langdetect.DetectorFactory.seed = 0


def plain_fields(row: Mapping[str, object]) -> Line:
    """Return the texts and whole numbers of a row and its `metadata`, which JSON can hold."""
    fields = {name: value for name, value in row.items() if isinstance(value, str | int)}
    more = row.get("metadata")
    return fields | ({"metadata": plain_fields(more)} if isinstance(more, dict) else {})


def not_supported(name: str, why: str) -> RefusedTask:
    """Build the refusal of a task; `why` is the reason, the words after "as"."""
    return RefusedTask(f"{name} is not supported, as {why}")


def no_such_task(name: str, known: Iterable[str]) -> RefusedTask:
    """Build the refusal of a name that a provider lacks, with the names most like it."""
    near = get_close_matches(name, list(known), n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return RefusedTask(f"it has no task {name!r}{hint}")


def check_section(name: str, kind: str, *, ranks: bool) -> None:
    """Raise RefusedTask for a task of the other section of a suite than it was requested under."""
    if ranks != (kind == "choices"):
        what = "choices; put it under `tasks`"
        other = "no choices; put it under `generation_tasks`"
        raise RefusedTask(f"{name} ranks {what if ranks else other}")


def common_stop(stops: Mapping[str, list[str]]) -> list[str]:
    """Return the stop strings that all parts of a task share; raise RefusedTask if they differ."""
    first, *others = stops.values()
    if any(other != first for other in others):
        raise RefusedTask("its parts have different stop strings; name each part as a task")
    return first
