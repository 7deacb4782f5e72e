"""The contract between this package and a provider's program.

    python -m evaluation.providers.adapters.<provider> REQUEST REPLY

REQUEST is a JSON object: `task` (the provider's name of a task or group) and `include_path` (a user's
task files, or null). A reply of one line `{"refused": sentence}` refuses it.

To render the task, it has `kind` (`generative` or `choices`), `chat`, `num_fewshot`, `limit` and
`mirrors`. The reply is one line, `{"info": …, "documents": […]}`. A document has an `id`, unique in the
task, and a `part`, the task that it belongs to where a group was requested; and for generated answers

    prompt        text, or null where there are messages
    messages      turns of a chat, or null
    document      the data that verify a completion, as JSON
    gold          a text that answers it, or null

or for ranked choices

    choices       candidates: pairs of a context and the continuation that is ranked
    unconditional the same without the question, or null
    right         index of the right one
    fields        texts and whole numbers of its row, by which a suite may group questions

`info` has `version`, `kind`, `stop`, `max_new_tokens`, `num_fewshot`, `metrics`, `documents` (how many
there are in all), `datasets` (where each came from), `task_files` (checksum of a user's task files) and
`read`: `dataset`, `config` and `files` of each dataset, every file with its status before it was read
(null for the hub), and a user's task files as `kind: tasks`.

To score completions, it has `cases`, pairs of such a `document` and a completion, `task_files`, and
`seconds` and `memory_mb` for one case. The reply is a line `{"version": …}` and, as soon as there is one,
a line for each case in order: `{"scores": {metric: …}}` or `{"error": …}`. A score is a number, or a list
with one per instruction. A case that takes longer ends the program by SIGALRM.
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

from evaluation.children import limit_memory

START_SECONDS = 600.0
"""Time for the program to import its libraries and build a task for scoring."""

Line = dict[str, Any]

Score = Callable[[Line, str], Mapping[str, Any]]
"""Takes a document and a completion; returns scores by metric."""


class RefusedTask(Exception):
    """The task cannot be used; the text is a sentence for the user."""


def not_supported(name: str, why: str) -> RefusedTask:
    """Build the refusal of a task; `why` is the reason, the words after "as"."""
    return RefusedTask(f"{name} is not supported, as {why}")


def no_such_task(name: str, known: Iterable[str]) -> RefusedTask:
    """Build the refusal of a name that a provider lacks, with the names most like it."""
    near = get_close_matches(name, list(known), n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return RefusedTask(f"it has no task {name!r}{hint}")


def main(package: str, render: Callable[[Line], Line], scorer: Callable[[Line], Score]) -> None:
    """Answer the request of the command line.

    Args:
        package: The provider's package, whose version is reported.
        render: Returns the reply to a request to render, without the version.
        scorer: Returns the function that scores completions, for a request to score.
    """
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with open(sys.argv[2], "w", encoding="utf-8", buffering=1) as file:
        try:
            if "cases" in request:
                _score(request, scorer, package, lambda line: print(json.dumps(line), file=file))
            else:
                reply = render(request)
                reply["info"]["version"] = version(package)
                print(json.dumps(reply, allow_nan=False), file=file)
        except RefusedTask as error:
            print(json.dumps({"refused": str(error)}), file=file)


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


def check_section(name: str, kind: str, *, ranks: bool) -> None:
    """Raise RefusedTask for a task of the other section of a suite than it was requested under."""
    if ranks != (kind == "choices"):
        what = (
            "choices; put it under `tasks`"
            if ranks
            else "no choices; put it under `generation_tasks`"
        )
        raise RefusedTask(f"{name} ranks {what}")


def common_stop(stops: Mapping[str, list[str]]) -> list[str]:
    """Return the stop strings that all parts of a task share; raise RefusedTask if they differ."""
    first, *others = stops.values()
    if any(other != first for other in others):
        raise RefusedTask("its parts have different stop strings; name each part as a task")
    return first


def plain_fields(row: Mapping[str, object]) -> Line:
    """Return the texts and whole numbers of a row and its `metadata`, which JSON can hold."""
    fields = {name: value for name, value in row.items() if isinstance(value, str | int)}
    more = row.get("metadata")
    return fields | ({"metadata": plain_fields(more)} if isinstance(more, dict) else {})
