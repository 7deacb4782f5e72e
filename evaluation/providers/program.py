"""A provider's program, which runs in the provider's environment, as `adapters.contract` describes."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import write_json
from evaluation.processes import ProgramEnd, is_python, run_python
from evaluation.version import IS_INSTALLED, ROOT

_MODULE = "evaluation.providers.adapters"


@dataclass(frozen=True)
class Provider:
    """One of the providers, with its interpreter and the version that a task needs."""

    name: str
    python: Path
    version: str
    nltk_data: Path | None = None

    @property
    def install(self) -> str:
        """Return the command that installs its environment."""
        if not IS_INSTALLED:
            return "make providers"
        return f"pip install -r {ROOT}/locks/{self.name.replace('_', '-')}.lock"

    def check(self) -> None:
        """Raise SourceError if the provider's environment is not there."""
        if not is_python(self.python):
            raise SourceError(
                f"{self.name} is not installed: no {self.python}; run `{self.install}`, or set "
                f"`providers.{self.name}` to the Python of an environment that has it"
            )

    def other_version(self, reported: object) -> str:
        """Return a sentence on the version that its program reports in place of the required one."""
        required = f"but {self.version} is required; run `{self.install}`"
        return f"{self.python} has {self.name} {reported}, {required}"

    def ask(
        self, request: Mapping[str, Any], seconds: float, **variables: str
    ) -> tuple[list[dict[str, Any]], ProgramEnd]:
        """Run the program with a request; return the complete lines of its reply, and how it ended.

        Args:
            seconds: Time after which it is killed.
            variables: Environment variables in addition to ours.

        Raises:
            SourceError: The provider is not installed, or its interpreter does not start.
        """
        self.check()
        given = {"TOKENIZERS_PARALLELISM": "false", **variables}
        if self.nltk_data is not None:
            given["NLTK_DATA"] = str(self.nltk_data.resolve())
        with tempfile.TemporaryDirectory() as name:
            folder, files = Path(name), ("request.json", "reply.jsonl")
            write_json(folder / files[0], dict(request))
            module = f"{_MODULE}.{self.name}"
            try:
                ended = run_python(self.python, module, files, folder, given, seconds)
            except OSError as error:
                raise SourceError(
                    f"{self.python} cannot be run ({error.strerror}); run `{self.install}` again"
                ) from None
            return list(_objects(folder / files[1])), ended


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the complete lines that are JSON objects, up to the first that is not."""
    for line in (path.read_bytes() if path.exists() else b"").split(b"\n")[:-1]:
        try:
            read = json.loads(line)
        except ValueError:
            return
        if not isinstance(read, dict):
            return
        yield read
