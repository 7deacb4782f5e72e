"""The contract between this package and a provider's program.

    python -m evaluation.providers.adapters.<provider> REQUEST REPLY

REQUEST is a JSON object with `task`, the provider's name of a task or group, and more for one of two
purposes. The first line of REPLY is `{"refused": sentence}`, or has `version`, the provider's.

To render the task: `kind` (`generative` or `choices`), `chat`, `num_fewshot`, `limit`, `mirrors`. The
first line has `info` and `documents`, as `tasks.TaskInfo` and `Document` describe them.

To score completions: `cases` (pairs of a document's `document` and a completion), `seconds` and
`memory_mb`. As soon as there is one, a line follows for each case in order: `{"scores": {metric: …}}` or
`{"error": …}`. A score is a number, or a list with one per instruction. A case that takes longer than
`seconds` ends the program by SIGALRM.
"""

import json
import random
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.processes import limit_memory
from evaluation.providers.mirrors import find_mirror, split_files

START_SECONDS = 600.0
"""Time for the program to import its libraries and build a task for scoring."""

Line = dict[str, Any]

Score = Callable[[Line, str], Mapping[str, Any]]
"""Takes a document and a completion; returns scores by metric."""


class RefusedTask(BaseException):  # the harnesses catch every Exception here and there
    """The task cannot be used; the text is a sentence for the user."""


@dataclass(frozen=True)
class TaskPart:
    """The requested task, or one of a group, as rendered; `count` is of documents without the limit."""

    name: str
    stop: list[str]
    max_new_tokens: int | None
    num_fewshot: int
    metrics: dict[str, bool]
    documents: list[Line]
    count: int


def main(
    package: str, parts: Callable[[Line], Iterable[TaskPart]], scorer: Callable[[Line], Score]
) -> None:
    """Answer the request of the command line; `package` is the provider's, whose version is reported."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    lines = _scored(request, scorer) if "cases" in request else _rendered(request, parts)
    with open(sys.argv[2], "w", encoding="utf-8", buffering=1) as file:
        try:
            print(json.dumps({"version": version(package), **next(lines)}), file=file)
            for line in lines:
                print(json.dumps(line), file=file)
        except (RefusedTask, SourceError) as error:
            print(json.dumps({"refused": str(error)}), file=file)


def _rendered(request: Line, parts: Callable[[Line], Iterable[TaskPart]]) -> Iterator[Line]:
    sources, rendered = read_mirrors(request["mirrors"]), [*parts(request)]
    generated = rendered if request["kind"] == "generative" else []
    if any(part.stop != generated[0].stop for part in generated):
        raise RefusedTask("its parts have different stop strings; name each part as a task")
    info = {
        **sources,
        "stop": generated[0].stop if generated else [],
        "max_new_tokens": max((part.max_new_tokens or 0 for part in generated), default=0) or None,
        "num_fewshot": {part.name: part.num_fewshot for part in rendered},
        "metrics": {name: up for part in rendered for name, up in part.metrics.items()},
        "documents": sum(part.count for part in rendered),
    }
    yield {"info": info, "documents": [line for part in rendered for line in part.documents]}


def _scored(request: Line, scorer: Callable[[Line], Score]) -> Iterator[Line]:
    limit = signal.setitimer  # the kernel ends a program whose metric hangs in native code, too
    _count_computing()
    limit(signal.ITIMER_REAL, START_SECONDS)
    score = scorer(request)
    limit_memory(request["memory_mb"] << 20)
    yield {}
    for document, completion in request["cases"]:
        limit(signal.ITIMER_REAL, request["seconds"])
        seed(0)  # some metrics draw
        try:
            given = score(json.loads(json.dumps(document)), completion)  # metrics write into it
            line: Line = {"scores": {name: _plain(value) for name, value in given.items()}}
        except (Exception, RefusedTask) as error:  # noqa: BLE001 - metrics raise what they like
            line = {"error": f"{type(error).__name__}: {error}"}
        yield line


def _count_computing() -> None:
    """Make alarms, by which metrics limit their time, count seconds of computing from now on.

    By the clock, a busy machine would stop right answers, which metrics would count as wrong.
    """
    module: Any = signal
    handle, start = signal.signal, signal.setitimer
    timers = {signal.ITIMER_REAL: signal.ITIMER_PROF}
    signals = {signal.SIGALRM: signal.SIGPROF}
    module.setitimer = lambda which, *seconds: start(timers.get(which) or which, *seconds)
    module.signal = lambda number, handler: handle(signals.get(number) or number, handler)
    module.alarm = lambda seconds: int(start(signal.ITIMER_PROF, seconds)[0])


def _plain(value: Any) -> Any:
    """Return numbers in JSON's types; anything else as the name of its type, which is not a score."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return float(value) if isinstance(value, int | float) else f"<{type(value).__name__}>"


def read_mirrors(mirrors: Mapping[str, str]) -> Line:
    """Make `datasets.load_dataset` read from mirrors; return `datasets` and `read` of `info`, which grow."""
    import datasets
    from huggingface_hub import HfApi

    from_hub = datasets.load_dataset
    record: Line = {"datasets": {}, "read": []}

    class Splits(datasets.DatasetDict):  # type: ignore[misc]
        """The splits of a mirror, which are read when they are looked up."""

        def __init__(self, read: Callable[[str], Any]) -> None:
            self.read = read

        def filter(self, function: Any) -> Any:
            return Splits(lambda split: self[split].filter(function))

        def __missing__(self, split: str) -> Any:
            return self.setdefault(split, self.read(split))

    def load(path: str, name: str | None = None, *rest: Any, split: Any = None, **more: Any) -> Any:
        root = find_mirror(path, mirrors)
        record["datasets"][path] = str(root or "hub")
        if root is None:
            record["read"].append([path, name, str(split)])
            if "/" in path and not Path(path).exists():  # without the hub, any build would be taken
                more["revision"] = HfApi().dataset_info(path, revision=more.get("revision")).sha
                record["datasets"][path] = f"hub@{more['revision']}"
            return from_hub(path, name, *rest, split=split, **more)

        def read(split: str) -> Any:
            files = [str(file) for file in split_files(root, path, name, split)]
            record["read"].append([path, name, split])
            if Path(files[0]).is_dir():
                return datasets.load_from_disk(files[0])
            kind = "parquet" if files[0].endswith(".parquet") else "json"
            # into the program's own folder, as there may be no other that may be written
            return from_hub(kind, data_files=files, split="train", cache_dir="datasets")

        return Splits(read) if split is None else read(split)

    datasets.load_dataset = load
    return record


def seed(number: int) -> None:
    """Seed the generators that tasks and metrics draw from, NumPy's as both providers do."""
    import numpy as np

    random.seed(number)
    np.random.seed(1234)
    if (langdetect := sys.modules.get("langdetect")) is not None:
        langdetect.DetectorFactory.seed = 0


def plain_fields(row: Mapping[str, object]) -> Line:
    """Return the texts and whole numbers of a row, which JSON can hold."""
    return {name: value for name, value in row.items() if isinstance(value, str | int)}


def check_section(name: str, kind: str, *, ranks: bool) -> None:
    """Raise RefusedTask for a task of the other section of a suite than it was requested under."""
    if ranks != (kind == "choices"):
        what = "choices; put it under `tasks`" if ranks else "none; put it under `generation_tasks`"
        raise RefusedTask(f"{name} ranks {what}")
