"""What a provider's program owes to whoever runs it, by a program of two lines."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

PROGRAM = """
import os, pickle, socket, subprocess, sys
from evaluation.providers.adapters.contract import main

PICKLED = sys.argv.pop()
ACTS = {
    "connect": lambda: socket.create_connection(("127.0.0.1", 9)),
    "start": lambda: subprocess.run(["true"]),
    "shell": lambda: os.system("true"),
    "fork": lambda: os.fork(),
    "unpickle": lambda: pickle.loads(bytes.fromhex(PICKLED)),
    "memory": lambda: bytearray(10**11),
    "right": lambda: None,
}

def scorer(request, cases):
    def score(document, completion):
        document["written"] = True
        ACTS[completion]()
        return {"exact": True, "parts": (1, 0), "other": {1}}
    return score

main("pytest", None, scorer, None, ())
"""


def command(folder: Path, *completions: str) -> list[str]:
    (folder / "request.json").write_text('{"memory_mb": 2048}')
    lines = [
        json.dumps({"number": number, "document": {}, "completion": text})
        for number, text in enumerate(completions)
    ]
    (folder / "cases.jsonl").write_text("\n".join(lines) + "\n")
    pickled = pickle.dumps(Path("somewhere")).hex()
    return [sys.executable, "-c", PROGRAM, "score", str(folder), pickled]


def scores(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "scores.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize("act", ["connect", "start", "shell", "fork", "unpickle"])
def test_a_scorer_that_reaches_out_gives_no_score(tmp_path: Path, act: str) -> None:
    subprocess.run(command(tmp_path, act, "right"), env=ENVIRONMENT, check=True)
    reached, right = scores(tmp_path)
    assert reached["error"].startswith("PermissionError: a scorer may not use")
    assert right["scores"] == {"exact": 1.0, "parts": [1.0, 0.0], "other": "<set>"}


def test_a_scorer_out_of_memory_ends(tmp_path: Path) -> None:
    done = subprocess.run(command(tmp_path, "right", "memory"), env=ENVIRONMENT, check=False)
    assert done.returncode == 77
    assert len(scores(tmp_path)) == 1
