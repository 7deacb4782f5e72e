"""Requests to olmo-eval's own code, in its environment; tests skip where that is not there."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.settings.provided import Providers
from tests.conftest import ROOT

Line = dict[str, Any]


def asked(mirrors: dict[str, str], task: str, kind: str, **more: Any) -> Line:
    """A request to render a task; its `cases` are judged."""
    request = {"task": task, "kind": kind, "chat": False, "num_fewshot": None, "limit": 12}
    defaults = {"include_path": None, "expands": False, "python": None, "cases": []}
    return {**request, **defaults, "mirrors": mirrors, **more}


def environment() -> Path:
    python = ROOT / Providers().olmo_eval
    if not os.access(python, os.X_OK):
        pytest.skip(f"no {python}: `make providers OLMO_EVAL=…` installs it")
    return python


def theirs(task: str, **more: Any) -> Line:
    return {"provider": "olmo_eval", "task": task, **more}


def answers(requests: list[Line], folder: Path) -> Iterator[Line]:
    """What `olmo_reference` answers to requests of `asked`."""
    given = "\n".join(map(json.dumps, requests))
    done = _run(["-m", "tests.providers.olmo_reference", str(folder)], given, HF_HUB_OFFLINE="1")
    return map(json.loads, done.splitlines())


def by_olmo_eval(imports: str, prints: str, given: Any = None) -> Any:
    """What a program prints as JSON in olmo-eval's environment; `given` is its input."""
    return json.loads(_run(["-c", f"import json, sys\n{imports}\n{prints}"], json.dumps(given)))


def _run(arguments: list[str], given: str, **variables: str) -> str:
    done = subprocess.run(
        [environment(), *arguments],
        input=given,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def settings(mirrors: dict[str, str]) -> Line:
    """Keys of a configuration for tasks of olmo-eval."""
    providers = {"olmo_eval": str(environment())}
    return {"mirrors": mirrors, "providers": providers, "sequence_length": 4096}
