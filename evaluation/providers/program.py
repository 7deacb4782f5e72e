"""A provider's program, run in an environment of its own and talked to through files.

    request.json, cases.jsonl  ->  python -m evaluation.providers.bridge.<provider>  ->  its files

`bridge.files` has the contract. Whatever goes wrong over there becomes one sentence here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import write_json
from evaluation.interpreters import NotStarted, Program, ProgramEnd, is_python

TITLES: Mapping[str, str] = {"lighteval": "lighteval", "lm_eval": "lm-evaluation-harness"}

INSTALL = "make providers"

_MODULE = "evaluation.providers.bridge"


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
        if not is_python(self.python):
            raise SourceError(
                f"{self.title} is not installed: no {self.python}; run `{INSTALL}`, or set "
                f"`providers.{self.name}` to the Python of an environment that has it"
            )


def run(
    provider: Provider,
    verb: str,
    folder: Path,
    request: Mapping[str, Any],
    keep_on: Callable[[], bool],
) -> ProgramEnd:
    """Runs a verb on `folder` until it ends, or `keep_on` says that it has taken too long."""
    provider.check()
    write_json(folder / "request.json", dict(request))
    module, variables = f"{_MODULE}.{provider.name}", _variables(provider, verb)
    program = Program(provider.python, module, (verb, str(folder)), folder, variables)
    try:
        return program.run(keep_on)
    except NotStarted as error:
        raise SourceError(
            f"{provider.python} cannot be run ({error}); run `{INSTALL}` again"
        ) from None


def _variables(provider: Provider, verb: str) -> dict[str, str]:
    """Sets have one order in every process, and scores need no network."""
    given = {"TOKENIZERS_PARALLELISM": "false", "PYTHONHASHSEED": "0"}
    if provider.nltk_data is not None:
        given["NLTK_DATA"] = str(provider.nltk_data.resolve())
    if verb == "score":
        given |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return given
