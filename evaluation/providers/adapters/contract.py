"""The contract between this package and a provider's program.

    python -m evaluation.providers.adapters.<provider> REQUEST REPLY

REQUEST is a JSON object: `task` (the provider's name of a task or group), `include_path` (a user's task
files, or null), and more for one of two purposes. REPLY is `{"refused": sentence}`, or as follows.

To render the task: `kind` (`generative` or `choices`), `chat`, `num_fewshot`, `limit`, `mirrors`. The
reply is a line `{"info": …, "documents": […]}`, as `render.TaskInfo`, `Document` and `RankedQuestion`
describe it.

To score completions: `cases` (pairs of a document's `document` and a completion), `task_files`, `seconds`
and `memory_mb`. The reply is a line `{"version": …}` and, as soon as there is one, a line for each case
in order: `{"scores": {metric: …}}` or `{"error": …}`. A score is a number, or a list with one per
instruction. A case that takes longer than `seconds` ends the program by SIGALRM.
"""

import json
import random
import signal
import sys
import zlib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evaluation.processes import limit_memory
from evaluation.providers.adapters.mirror_files import read_mirrors
from evaluation.providers.adapters.refusals import RefusedTask
from evaluation.providers.adapters.task_files import check_user_files

START_SECONDS = 600.0
"""Time for the program to import its libraries and build a task for scoring."""

Line = dict[str, Any]

Render = Callable[[Line], tuple[Line, list[Line]]]
"""Takes a request to render; returns the adapter's part of `info`, and the documents."""

Score = Callable[[Line, str], Mapping[str, Any]]
"""Takes a document and a completion; returns scores by metric."""


def main(package: str, render: Render, scorer: Callable[[Line], Score]) -> None:
    """Answer the request of the command line; `package` is the provider's, whose version is reported."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with open(sys.argv[2], "w", encoding="utf-8", buffering=1) as file:

        def put(line: Line) -> None:
            print(json.dumps(line), file=file)

        try:
            files = check_user_files(request["include_path"], request.get("task_files"))
            if "cases" in request:
                _score(request, scorer, package, put)
            else:
                sources = read_mirrors(request["mirrors"])
                info, documents = render(request)
                sources["read"] += files.pop("read")
                about = {"version": version(package), "kind": request["kind"], **sources, **files}
                put({"info": about | info, "documents": documents})
        except RefusedTask as error:
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
        return [_plain(one) for one in value]
    return float(value) if isinstance(value, int | float) else f"<{type(value).__name__}>"


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
