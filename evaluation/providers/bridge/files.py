"""The contract between this package and a provider, one program with two verbs.

    python -m evaluation.providers.bridge.<provider> render FOLDER
    python -m evaluation.providers.bridge.<provider> score FOLDER

`FOLDER/request.json` holds what is asked: `task`, `include_path` (a user's task files, or null),
`kind` (`generative` or `choices`), `chat`, `num_fewshot`, `limit`, `mirrors`; for `score` `memory_mb`
and `task_files`. A verb that refuses writes `FOLDER/refused.json` with a sentence and exits with 3.

`render` writes `documents.jsonl`, a line for each document:

    id            unique in the task
    part          the task that it belongs to, where a group of tasks was asked for
    prompt        text, or null where there are messages
    messages      turns of a chat, or null
    document      what `score` needs to judge a completion, as JSON
    gold          a text that answers it, or null

of a ranked choice instead of prompt, messages, document and gold

    choices       candidates: pairs of a context and what is ranked behind it
    unconditional the same without the question, or null
    right         index of the right one

and at last `meta.json`: `version`, `kind`, `stop`, `max_new_tokens`, `num_fewshot`, `metrics`,
`documents` (how many there are in all), `datasets` (where each came from), and `read`: `dataset`,
`config` and `files` of each, a file with what `statuses.status_of` told before; null of the hub's. A
user's task files stand in `read` as `kind: tasks`, and their checksum in `task_files`.

`score` reads `cases.jsonl` (lines of `number`, `document`, `completion`) and writes `scores.jsonl`,
a line as soon as it has one: first `{"ready": true, "version": …}`, then `{"number": 0, "scores": {metric: …}}`
or `{"number": 0, "error": "…"}`. A score is a number, or a list of them, one an instruction.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

REFUSED = 3
"""Exit code of a verb that refuses."""

Line = dict[str, Any]
Score = Callable[[Any, str], Mapping[str, Any]]
"""Takes a document and a completion; gives scores by metric."""

_NO_USE = (
    *("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec"),
    *("os.fork", "os.forkpty", "os.posix_spawn", "pickle.find_class"),
)
"""Events that no scorer has a good reason for: connections, processes, unpickling."""


class Refused(Exception):
    """The task is not given; its text is a sentence for whoever asked."""


def main(
    package: str,
    render: Callable[[Line, Path], Line],
    scorer: Callable[[Line, list[Line]], Score],
) -> None:
    """Runs the verb of the command line; `package` is the provider's, whose version is told."""
    verb, folder = sys.argv[1], Path(sys.argv[2])
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    try:
        if verb == "render":
            _write(folder / "meta.json", {"version": version(package), **render(request, folder)})
        else:
            _score(folder, request, scorer, version(package))
    except Refused as error:
        _write(folder / "refused.json", {"sentence": str(error)})
        sys.exit(REFUSED)


def _score(
    folder: Path, request: Line, scorer: Callable[[Line, list[Line]], Score], installed: str
) -> None:
    cases = list(read_lines(folder / "cases.jsonl"))
    score = scorer(request, cases)
    _limit_memory(request.get("memory_mb"))
    with open(folder / "scores.jsonl", "a", encoding="utf-8") as file:
        _put(file, {"ready": True, "version": installed})
        sys.addaudithook(_forbid)
        for case in cases:
            _put(file, {"number": case["number"], **_outcome(score, case)})


def _outcome(score: Score, case: Line) -> Line:
    try:
        return {"scores": {name: _plain(v) for name, v in score(*_of(case)).items()}}
    except Exception as error:  # noqa: BLE001 - a provider's metrics raise what they like
        if isinstance(error, MemoryError):
            os._exit(77)  # nothing in this process can be trusted any more
        return {"error": f"{type(error).__name__}: {error}"}


def _of(case: Line) -> tuple[Any, str]:
    return json.loads(json.dumps(case["document"])), case["completion"]  # metrics write into it


def _forbid(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _NO_USE and not (event == "socket.connect" and isinstance(arguments[1], str)):
        raise PermissionError(f"a scorer may not use {event}")


def _limit_memory(megabytes: int | None) -> None:
    if megabytes is not None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 1024**2, hard))


def _plain(value: Any) -> Any:
    """Numbers as JSON has them; anything else is told by its type, and is no score."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return float(value) if isinstance(value, int | float) else f"<{type(value).__name__}>"


def read_lines(path: Path) -> Iterator[Line]:
    with open(path, encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def kind_refused(name: str, is_choices: bool) -> Refused:
    """Of a task that is asked for under the wrong section of a suite."""
    if is_choices:
        return Refused(f"{name} ranks choices; put it under `tasks`")
    return Refused(f"{name} ranks no choices; put it under `generation_tasks`")


def write_documents(folder: Path, documents: list[Line]) -> None:
    """Raises Refused for a document that is not what JSON can hold."""
    with open(folder / "documents.jsonl", "w", encoding="utf-8") as file:
        for line in documents:
            try:
                file.write(json.dumps(line, allow_nan=False) + "\n")
            except (TypeError, ValueError) as error:
                raise Refused(f"its documents are not text alone ({error})") from None


def _put(file: Any, line: Line) -> None:
    file.write(json.dumps(line) + "\n")
    file.flush()


def _write(path: Path, content: Line) -> None:
    aside = path.with_suffix(".tmp")
    aside.write_text(json.dumps(content), encoding="utf-8")
    aside.rename(path)
