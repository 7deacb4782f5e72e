"""A provider's program, which runs in the provider's environment, as `adapters.contract` describes."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import write_json
from evaluation.processes import ProgramEnd, is_python, run_python

INSTALL = "run `make providers`"


@dataclass(frozen=True)
class Provider:
    """One of the providers, with its interpreter and the version that a task needs."""

    name: str
    python: Path
    version: str
    nltk_data: Path | None = None

    def check(self) -> None:
        """Raise SourceError if the provider's environment is not there."""
        if not is_python(self.python):
            raise SourceError(
                f"{self.name} is not installed: no {self.python}; {INSTALL}, or set "
                f"`providers.{self.name}` to the Python of an environment that has it"
            )

    def ask(
        self, key: str, request: Mapping[str, Any], seconds: float, **variables: str
    ) -> tuple[list[dict[str, Any]], ProgramEnd]:
        """Run the program with a request; return the complete lines of its reply, and how it ended.

        Args:
            key: Key of the suite that names the task, for errors.
            seconds: Time after which it is killed.
            variables: Environment variables in addition to ours.

        Raises:
            SourceError: The task is refused, or there is no reply by the required version.
        """
        self.check()
        lines, ended = self._run(request, seconds, variables)
        first = lines[0] if lines else {}
        if "refused" in first:
            raise SourceError(f"{key}: {first['refused']}")
        if "version" not in first:
            raise SourceError(
                f"{key}: {self.name}, which has {seconds:g} seconds, {ended}; if its data cannot be "
                "had, name a local copy under `mirrors`"
            )
        if first["version"] != self.version:
            raise SourceError(
                f"{key}: {self.python} has {self.name} {first['version']}, but {self.version} is required; "
                f"{INSTALL}"
            )
        return lines, ended

    def _run(
        self, request: Mapping[str, Any], seconds: float, variables: Mapping[str, str]
    ) -> tuple[list[dict[str, Any]], ProgramEnd]:
        given = {"TOKENIZERS_PARALLELISM": "false", **variables}
        if self.nltk_data is not None:
            given["NLTK_DATA"] = str(self.nltk_data.resolve())
        module = f"evaluation.providers.adapters.{self.name}"
        with tempfile.TemporaryDirectory() as name:
            folder, files = Path(name), ("request.json", "reply.jsonl")
            write_json(folder / files[0], dict(request))
            try:
                ended = run_python(self.python, module, files, folder, given, seconds)
            except OSError as error:
                why = error.strerror
                raise SourceError(f"{self.python} cannot be run ({why}); {INSTALL}") from None
            reply = folder / files[1]
            lines = reply.read_bytes().split(b"\n")[:-1] if reply.exists() else []
        return [json.loads(line) for line in lines], ended
