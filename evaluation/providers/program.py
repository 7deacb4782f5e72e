"""A provider's program, run in an environment of its own and talked to through files.

    request.json, cases.jsonl  ->  python -m evaluation.providers.bridge.<provider>  ->  its files

`bridge.files` has the contract. Whatever goes wrong over there becomes one sentence here.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import write_json

TITLES: Mapping[str, str] = {"lighteval": "lighteval", "lm_eval": "lm-evaluation-harness"}

ROOT = Path(__file__).resolve().parents[2]
"""Where the provider's interpreter finds the bridge."""

INSTALL = "make providers"

_MODULE = "evaluation.providers.bridge"
_POLL = 0.1
_TOLD = 300
"""Characters of a program's last words that an error repeats."""


@dataclass(frozen=True)
class Provider:
    """One of the providers, with its interpreter and the version that is asked for."""

    name: str
    python: Path
    version: str
    nltk_data: Path | None = None

    @property
    def title(self) -> str:
        return TITLES[self.name]

    def check(self) -> None:
        """Raises SourceError if its environment is not there."""
        if not os.access(self.python, os.X_OK) or self.python.is_dir():
            raise SourceError(
                f"{self.title} is not installed: no {self.python}; run `{INSTALL}`, or set "
                f"`providers.{self.name}` to the Python of an environment that has it"
            )


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit code, None where it was stopped, and its last words."""

    code: int | None
    said: str

    def __str__(self) -> str:
        how = "was stopped" if self.code is None else f"ended with code {self.code}"
        return f"{how}: {self.said}" if self.said else how


def run(
    provider: Provider,
    verb: str,
    folder: Path,
    request: Mapping[str, Any],
    keep_on: Callable[[], bool],
) -> Ended:
    """Runs a verb on `folder` until it ends, or `keep_on` says that it has taken too long."""
    provider.check()
    write_json(folder / "request.json", dict(request))
    log = folder / "log.txt"
    command = [str(provider.python), "-m", f"{_MODULE}.{provider.name}", verb, str(folder)]
    with open(log, "wb") as output, _started(command, provider, verb, output) as process:
        while process.poll() is None and keep_on():
            time.sleep(_POLL)
        code = process.poll()
    return Ended(code, _last_words(log))


@contextmanager
def _started(
    command: Sequence[str], provider: Provider, verb: str, output: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """The process, which ends with all that it started when this does."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(provider, verb),
            cwd=output.name.rpartition("/")[0],
            start_new_session=True,
        )
    except OSError as error:
        raise SourceError(
            f"{provider.python} cannot be run ({error.strerror}); run `{INSTALL}` again"
        ) from None
    try:
        yield process
    finally:
        _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):  # nothing of it is left
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(provider: Provider, verb: str) -> dict[str, str]:
    """Ours, but for what would lead its Python to our packages; scores need no network."""
    given = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    given |= {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "TOKENIZERS_PARALLELISM": "false"}
    if provider.nltk_data is not None:
        given["NLTK_DATA"] = str(provider.nltk_data.resolve())
    if verb == "score":
        given |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return given


def _last_words(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_TOLD] if lines else ""
