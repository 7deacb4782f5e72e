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

    def other_version(self, reported: object) -> str:
        """Return a sentence on the version that its program reports in place of the required one."""
        return (
            f"{self.python} has {self.name} {reported}, but {self.version} is required; {INSTALL}"
        )

    def ask(
        self, request: Mapping[str, Any], seconds: float, **variables: str
    ) -> tuple[list[dict[str, Any]], ProgramEnd]:
        """Run the program with a request; return the complete lines of its reply, and how it ended.

        Args:
            seconds: Time after which it is killed.
            variables: Environment variables in addition to ours.
        """
        self.check()
        given = {"TOKENIZERS_PARALLELISM": "false", **variables}
        if self.nltk_data is not None:
            given["NLTK_DATA"] = str(self.nltk_data.resolve())
        with tempfile.TemporaryDirectory() as name:
            folder, files = Path(name), ("request.json", "reply.jsonl")
            write_json(folder / files[0], dict(request))
            module = f"evaluation.providers.adapters.{self.name}"
            try:
                ended = run_python(self.python, module, files, folder, given, seconds)
            except OSError as error:
                why = error.strerror
                raise SourceError(f"{self.python} cannot be run ({why}); {INSTALL}") from None
            reply = folder / files[1]
            lines = reply.read_bytes().split(b"\n")[:-1] if reply.exists() else []
        return [json.loads(line) for line in lines], ended
