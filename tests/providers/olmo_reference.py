"""Render and judge in olmo-eval's environment what its reference files hold, in one process.

    python -m tests.providers.olmo_reference FOLDER < requests.jsonl

Each request is one of `render`; its `cases`, if there are any, are judged as well. A line is answered
for each: `lines`, `meta` and `scores`, or `refused`. Mirrors may be shorter than the hub's datasets.
Where a program decides, a score has it, and what olmo-eval's scorer says where it is run as there.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import datasets

from evaluation.providers.adapters import olmo_eval, olmo_eval_data
from evaluation.providers.adapters.contract import (
    ProgramWithTests,
    RefusedTask,
    count_computing,
    read_lines,
)
from evaluation.providers.adapters.olmo_eval_scores import (
    Recorder,
    scorer,
    single_metrics,
    values_of,
)
from evaluation.providers.adapters.olmo_eval_tasks import find_tasks

PATIENCE = 20.0
"""On a busy machine a program that ends at last is waited for so many times its seconds."""


class Runs(Recorder):
    """Runs programs as olmo-eval does in its container: trusted ones, as they lie in the test."""

    def __init__(self, python: str | None) -> None:
        super().__init__(success=True)
        self.python = python or sys.executable

    async def execute_code(
        self, code: str, language: str = "python", timeout: float | None = None
    ) -> Any:
        assert language == "python"
        assert timeout is not None
        return self._run([self.python, "-c", code], timeout if "while True" in code else None)

    async def execute_command(self, command: str, timeout: float | None = None) -> Any:
        command = command.replace("/usr/local/bin/python3", self.python)
        if "while True" not in command:  # the machine may be busy
            command = command.replace("\ntimeout ", "\ntimeout 1")
        return self._run(["bash", "-c", command], None)

    def _run(self, command: list[str], seconds: float | None) -> Any:
        from olmo_eval.common.execution import ExecutionResult

        path = f"{Path(self.python).parent}:{os.environ['PATH']}"
        try:
            done = subprocess.run(
                command,
                timeout=seconds or PATIENCE * 20,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                env={**os.environ, "PATH": path},
            )
        except subprocess.TimeoutExpired:
            return ExecutionResult(success=False, error="it timed out")
        return ExecutionResult(success=done.returncode == 0, exit_code=done.returncode)


def scored(request: dict[str, Any], lines: list[dict[str, Any]]) -> list[Any]:
    python = request.get("python")
    score, tasks = scorer(request, []), find_tasks(request["task"], python)
    cases = [(lines[number]["document"], text) for number, text in request["cases"]]
    found = [score(document, text) for document, text in cases]

    def theirs(case: tuple[dict[str, Any], str]) -> Any:
        document, text = case
        task = tasks[document["part"]]
        return values_of(task, single_metrics(task), document["doc"], text, Runs(python))

    runs = any(isinstance(one, ProgramWithTests) for one in found)
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(theirs, cases)) if runs else [None] * len(cases)
    return [
        one if judged is None else {"theirs": judged, **_as_line(one)}
        for one, judged in zip(found, told, strict=True)
    ]


def _as_line(found: Any) -> dict[str, Any]:
    return found._asdict() if isinstance(found, ProgramWithTests) else {"passed": found}


def answered(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    try:
        meta = olmo_eval.render(request, folder)
    except RefusedTask as error:
        return {"refused": str(error)}
    lines = list(read_lines(folder / "documents.jsonl"))
    scores = scored(request, lines) if request["cases"] else []
    return {"lines": lines, "meta": meta, "scores": scores}


if __name__ == "__main__":
    count_computing()
    olmo_eval_data.EXAMPLE_ROWS.clear()
    load = datasets.load_dataset
    for line in sys.stdin:
        datasets.load_dataset = load
        print(json.dumps(answered(json.loads(line), Path(sys.argv[1]))), flush=True)
