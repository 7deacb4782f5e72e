"""A provider's program, which runs in the provider's environment and exchanges files with this package.

    request.json, cases.jsonl  ->  python -m evaluation.providers.adapters.<provider>  ->  its files

`adapters.contract` describes the files. Any error there becomes one sentence here. A provider's
libraries take seconds to import, so each program is started once and forks for every request.
"""

import json
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import write_json
from evaluation.interpreters import NotStarted, ProgramEnd, PythonProgram, Running, is_python
from evaluation.root import IS_INSTALLED, ROOT

TITLES: Mapping[str, str] = {
    "lighteval": "lighteval",
    "lm_eval": "lm-evaluation-harness",
}

_MODULE = "evaluation.providers.adapters"


@dataclass(frozen=True)
class Provider:
    """One of the providers, with its interpreter and the version that a task needs."""

    name: str
    python: Path
    version: str
    nltk_data: Path | None = None

    @property
    def title(self) -> str:
        """Name of the provider for messages."""
        return TITLES[self.name]

    @property
    def install(self) -> str:
        """Return the command that installs its environment."""
        if IS_INSTALLED:
            pip = f"{self.python.parent}/pip install"
            lock = ROOT / f"locks/{self.name.replace('_', '-')}.lock"
            return f"python -m venv {self.python.parents[1]} && {pip} -r {lock}"
        return "make providers"

    def check(self) -> None:
        """Raise SourceError if the provider's environment is not there."""
        if not is_python(self.python):
            raise SourceError(
                f"{self.title} is not installed: no {self.python}; run `{self.install}`, or set "
                f"`providers.{self.name}` to the Python of an environment that has it"
            )

    def other_version(self, reported: object) -> str | None:
        """Return a sentence if the version that its program reports is not the required one."""
        if reported == self.version:
            return None
        return (
            f"{self.python} has {self.title} {reported}, but {self.version} is required; run "
            f"`{self.install}`"
        )


_POLL = 0.02

_servers = threading.local()  # the kernel ends a program with the thread that has started it


def run(
    provider: Provider,
    verb: str,
    folder: Path,
    request: Mapping[str, Any],
    keep_on: Callable[[], bool],
) -> ProgramEnd:
    """Run a verb of a provider's program until it ends.

    Args:
        verb: `check`, `render` or `score`.
        folder: Empty folder in which the program finds its request and writes its files.
        keep_on: Called repeatedly; if it returns False, the program has taken too long and is
            killed.

    Raises:
        SourceError: The provider is not installed, or its interpreter does not start.
    """
    provider.check()
    write_json(folder / "request.json", dict(request))
    servers: dict[Any, _Server] = vars(_servers).setdefault("servers", {})
    key = os.getpid(), provider, verb == "score"
    if key not in servers or not servers[key].running.is_alive:
        servers[key] = _Server(provider, verb)
    try:
        return servers[key].run(verb, folder, keep_on)
    finally:
        if not servers[key].is_idle:
            del servers[key]


class _Server:
    """A provider's process with its libraries imported, which forks for each request.

    Args:
        verb: The verb that it is started for: scoring has other variables than rendering.
    """

    def __init__(self, provider: Provider, verb: str) -> None:
        stack = ExitStack()
        self.is_idle = True
        self.running: Running
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        module, variables = f"{_MODULE}.{provider.name}", _variables(provider, verb)
        program = PythonProgram(
            provider.python, module, ("serve",), folder, variables, listens=True
        )
        try:
            self.running = stack.enter_context(program.started())
        except NotStarted as error:
            stack.close()
            raise SourceError(
                f"{provider.python} cannot be run ({error}); run `{provider.install}` again"
            ) from None
        weakref.finalize(self, _close, os.getpid(), stack)

    def run(self, verb: str, folder: Path, keep_on: Callable[[], bool]) -> ProgramEnd:
        self.is_idle = False
        self.running.tell(json.dumps([verb, str(folder)]))
        while self.running.is_alive and keep_on():
            if (end := self.running.part_ended(f"\0{folder} ")) is not None:
                self.is_idle = True
                return end
            time.sleep(_POLL)
        return self.running.ended()


def _close(process: int, stack: ExitStack) -> None:
    if os.getpid() == process:  # not in a fork of this process
        stack.close()


def _variables(provider: Provider, verb: str) -> dict[str, str]:
    """Return variables that fix the order of sets, and keep scoring off the network."""
    given = {"TOKENIZERS_PARALLELISM": "false", "PYTHONHASHSEED": "0"}
    if provider.nltk_data is not None:
        given["NLTK_DATA"] = str(provider.nltk_data.resolve())
    if verb == "score":
        given |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return given
