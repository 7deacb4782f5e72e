"""The contract between this package and a provider, one program with three verbs.

    python -m evaluation.providers.adapters.<provider> check FOLDER
    python -m evaluation.providers.adapters.<provider> render FOLDER
    python -m evaluation.providers.adapters.<provider> score FOLDER
    python -m evaluation.providers.adapters.<provider> serve

`serve` imports the provider's libraries, and reads lines `["render", "FOLDER"]`. It runs each in a fork
and then prints a zero byte, the folder and the exit code.

`FOLDER/request.json` holds the request: `task`, `include_path` (a user's task files, or null),
`kind` (`generative` or `choices`), `chat`, `num_fewshot`, `limit` and `mirrors`; for `score` also
`memory_mb` and `task_files`. A verb that refuses writes `FOLDER/refused.json` with a sentence and exits
with 3.

`check` takes `tasks`, each with `task` and `include_path`, and `mirrors`. Before anything is rendered,
it refuses tasks that the provider lacks, and data that neither a mirror nor the hub has.

`render` writes `documents.jsonl`, a line for each document:

    id            unique in the task
    part          the task that it belongs to, where a group of tasks was requested
    prompt        text, or null where there are messages
    messages      turns of a chat, or null
    document      the data that `score` needs to verify a completion, as JSON
    gold          a text that answers it, or null

For ranked choices, it writes instead of prompt, messages, document and gold:

    choices       candidates: pairs of a context and the continuation that is ranked
    unconditional the same without the question, or null
    right         index of the right one
    fields        texts and whole numbers of its row, by which a suite may group questions

At last it writes `meta.json`: `version`, `kind`, `stop`, `max_new_tokens`, `num_fewshot`, `metrics`,
`documents` (how many there are in all), `datasets` (where each came from), and `read`: `dataset`,
`config` and `files` of each, every file with its `data.status_of` before it was read; null for the
hub. `read` lists a user's task files as `kind: tasks`, with their checksum in `task_files`.

`score` reads `cases.jsonl` (lines of `number`, `document`, `completion`) and writes `scores.jsonl`,
a line as soon as it has one: first `{"ready": true, "version": …}`, then
`{"number": 0, "scores": {metric: …}}` or `{"number": 0, "error": "…"}`. A score is a number, or a list
with one per instruction.
"""

import contextlib
import ctypes
import difflib
import importlib
import json
import os
import random
import resource
import signal
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

REFUSED = 3
"""Exit code of a verb that refuses."""

Line = dict[str, Any]


Score = Callable[[Any, str], Mapping[str, Any]]
"""Takes a document and a completion; returns scores by metric."""

_NO_USE = (
    *("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec"),
    *("os.fork", "os.forkpty", "os.posix_spawn", "pickle.find_class"),
)
"""Audit events that scorers may not raise: connections, processes, unpickling."""


class RefusedTask(Exception):
    """The task cannot be used; the text is a sentence for the user."""


def not_supported(name: str, title: str, why: str) -> RefusedTask:
    """Build the refusal of a task; `why` is the reason, the words after "as"."""
    return RefusedTask(f"{name} of {title} is not supported, as {why}")


def no_such_task(title: str, name: str, known: Iterable[str], what: str = "task") -> RefusedTask:
    """Build the refusal of a name that a provider lacks, with the names most like it."""
    near = difflib.get_close_matches(name, list(known), n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return RefusedTask(f"{title} has no {what} {name!r}{hint}")


def one_line(error: BaseException) -> str:
    """Return the text of an exception in one line of at most 300 characters."""
    return " ".join(str(error).split())[:300]


def main(
    package: str,
    render: Callable[[Line, Path], Line],
    scorer: Callable[[Line, list[Line]], Score],
    check: Callable[[Line], None],
    libraries: Iterable[str],
) -> None:
    """Run the verb of the command line.

    Args:
        package: The provider's package, whose version is recorded.
        render: Renders a request into a folder; returns the content of meta.json.
        scorer: Returns the function that scores completions, for a request and its cases.
        check: Raises RefusedTask for tasks that cannot be rendered.
        libraries: Modules that `serve` imports.
    """
    verb, place = served(libraries) if sys.argv[1] == "serve" else sys.argv[1:]
    folder = Path(place)
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    try:
        if verb == "check":
            check(request)
        elif verb == "render":
            content = render(request, folder)
            _write(folder / "meta.json", {"version": version(package), **content})
        else:
            _score(folder, request, scorer, package)
    except RefusedTask as error:
        _refuse(folder, str(error))
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != package:
            raise
        _refuse(
            folder,
            f"{sys.executable} has no {package}; set `providers.{package}` to the Python of an environment "
            "that has it, which `make providers` makes",
        )


def served(libraries: Iterable[str]) -> tuple[str, str]:
    """Wait for requests; fork for each, and return verb and folder only in the forks.

    The libraries are imported once, before the first request.
    """
    for library in libraries:
        with contextlib.suppress(Exception):  # the verb itself shows what is missing
            importlib.import_module(library)
    prctl = ctypes.CDLL(None).prctl
    while line := sys.stdin.readline():
        verb, folder = json.loads(line)
        if (child := os.fork()) == 0:
            prctl(1, signal.SIGKILL)  # it ends with its parent
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.chdir(folder)
            return verb, folder
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(f"\0{folder} {code}", flush=True)
    sys.exit()


def _refuse(folder: Path, sentence: str) -> NoReturn:
    _write(folder / "refused.json", {"sentence": sentence})
    sys.exit(REFUSED)


def _score(
    folder: Path, request: Line, scorer: Callable[[Line, list[Line]], Score], package: str
) -> None:
    cases = list(read_lines(folder / "cases.jsonl"))
    count_computing()
    score = scorer(request, cases)
    _limit_memory(request["memory_mb"])
    with open(folder / "scores.jsonl", "a", encoding="utf-8") as file:
        _put(file, {"ready": True, "version": version(package)})
        sys.addaudithook(_forbid)
        for case in cases:
            _put(file, {"number": case["number"], **_outcome(score, case)})


def count_computing() -> None:
    """Make alarms, by which metrics limit their time, count seconds of computing from now on.

    By the clock, a busy machine would stop right answers, which metrics would count as wrong.
    """
    handle = signal.signal

    def alarm(seconds: int) -> int:
        return int(signal.setitimer(signal.ITIMER_PROF, seconds)[0])

    def handle_computing(number: int, handler: Any) -> Any:
        return handle(signal.SIGPROF if number == signal.SIGALRM else number, handler)

    signal.alarm, signal.signal = alarm, handle_computing  # type: ignore[assignment]


def _outcome(score: Score, case: Line) -> Line:
    try:
        document = json.loads(json.dumps(case["document"]))  # metrics write into it
        scores = score(document, case["completion"])
        return {"scores": {name: _plain(value) for name, value in scores.items()}}
    except Exception as error:  # noqa: BLE001 - a provider's metrics raise what they like
        if isinstance(error, MemoryError):
            os._exit(77)  # this process cannot be trusted any more
        return {"error": f"{type(error).__name__}: {error}"}


def _forbid(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _NO_USE and not (event == "socket.connect" and isinstance(arguments[1], str)):
        raise PermissionError(f"a scorer may not use {event}")


def _limit_memory(megabytes: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 1024**2, hard))


def _plain(value: Any) -> Any:
    """Return numbers in JSON's types; anything else as the name of its type, which is not a score."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return float(value) if isinstance(value, int | float) else f"<{type(value).__name__}>"


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the JSON values of a file of lines."""
    with open(path, encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def seed(text: str) -> None:
    """Seed the generators that tasks and metrics draw from, so that two runs draw the same."""
    import numpy as np

    random.seed(text)
    np.random.seed(zlib.crc32(text.encode()))
    if (langdetect := sys.modules.get("langdetect")) is not None:
        langdetect.DetectorFactory.seed = 0


def _put(file: Any, line: Line) -> None:
    file.write(json.dumps(line) + "\n")
    file.flush()


def _write(path: Path, content: Line) -> None:
    aside = path.with_suffix(".tmp")
    aside.write_text(json.dumps(content), encoding="utf-8")
    aside.rename(path)
