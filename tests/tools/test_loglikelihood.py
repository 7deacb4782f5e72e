"""`loglikelihood` as it is called in a shell, and the places for its answers that are refused."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.histories.warm import python_words, run_shell
from tests.tools.conftest import Command, Ended, made

ROWS = [{"context_tokens": [1, 2], "continuation_tokens": [n]} for n in (3, 4, 5)]
TEXT = "".join(json.dumps(row) + "\n" for row in ROWS)


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text(TEXT)
    return path


Ask = Callable[..., Ended]


@pytest.fixture
def ask(command: Command, requests: Path, checkpoint: Path) -> Ask:
    """Asks for the answers to the requests, in this file and with these options."""

    def run(output: Path | str, *options: object) -> Ended:
        files = ("--requests", requests, "--output", output)
        return command("loglikelihood", checkpoint, *files, *options)

    return run


def test_requests_from_a_pipe(requests: Path, checkpoint: Path) -> None:
    program = f"{shlex.join(python_words())} -m evaluation loglikelihood {checkpoint}"
    line = f"gzip -c in.jsonl | zcat | {program} --requests /dev/stdin --output out.jsonl"
    done = run_shell(line, requests.parent)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (requests.parent / "out.jsonl").read_text().splitlines()]
    assert [{key: row[key] for key in ROWS[0]} for row in rows] == ROWS
    assert all(row["logprob"] < 0 for row in rows)
    assert "3 rows written to" in done.stdout


OUTPUTS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a folder": (lambda f: made(f / "out", Path.mkdir), "is not a file"),
    "in a file": (lambda f: f / "in.jsonl/out.jsonl", "in.jsonl"),
    "where nobody may write": (lambda f: Path("/sys/out.jsonl"), "/sys/out.jsonl"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_that_are_refused_before_anything_is_scored(
    requests: Path, ask: Ask, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluation.scoring.requests.open_checkpoint", None)
    make, words = OUTPUTS[name]
    output = make(requests.parent)
    before = {path: path.lstat().st_ino for path in requests.parent.rglob("*")}
    ended = ask(output)
    ended.check(1, words)
    assert "rows written" not in ended.out
    assert {path: path.lstat().st_ino for path in requests.parent.rglob("*")} == before
    assert requests.read_text() == TEXT


def test_a_length_beyond_the_trained_one_is_told(
    requests: Path, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    row = {"context_tokens": [1] * 100, "continuation_tokens": [2]}
    requests.write_text(json.dumps(row) + "\n")
    output = requests.parent / "out.jsonl"
    ask(output).check(0)
    assert "1 of 1 contexts do not fit the window of 64 tokens" in caplog.text
    caplog.clear()
    ask(output, "--max-length", 128).check(0)
    assert "do not fit" not in caplog.text
    ask(output, "--max-length", 1).check(0)
    row["continuation_tokens"] = [2, 3]
    requests.write_text(json.dumps(row) + "\n")
    ask(output, "--max-length", 1).check(1, "line 1", "more than the context window of 1")
