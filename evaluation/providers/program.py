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

        It is killed after `seconds`. A SourceError, such as for a refused task, begins with `key`, the
        suite's that names the task. `variables` are added to the environment.
        """
        self.check()
        lines, ended = self._run(request, seconds, variables)
        first = lines[0] if lines else {}
        found = first.get("version")
        if found == self.version:
            return lines, ended
        problem = first.get("refused") or (
            f"{self.python} has {self.name} {found}, but {self.version} is required; {INSTALL}"
            if found
            else f"{self.name}, which has {seconds:g} seconds, {ended}; if its data cannot be had, name a "
            "local copy under `mirrors`"
        )
        raise SourceError(f"{key}: {problem}")

    def _run(
        self, request: Mapping[str, Any], seconds: float, variables: Mapping[str, str]
    ) -> tuple[list[dict[str, Any]], ProgramEnd]:
        given = {"TOKENIZERS_PARALLELISM": "false", **variables}
        if self.nltk_data is not None:
            given["NLTK_DATA"] = str(self.nltk_data.resolve())
        module, files = (
            f"evaluation.providers.adapters.{self.name}",
            ("request.json", "reply.jsonl"),
        )
        with tempfile.TemporaryDirectory() as folder:
            request_file, reply = (Path(folder, name) for name in files)
            write_json(request_file, dict(request))
            ended = run_python(self.python, module, files, Path(folder), given, seconds)
            lines = reply.read_bytes().split(b"\n")[:-1] if reply.exists() else []
        return [json.loads(line) for line in lines], ended
