"""`loglikelihood` as it is called in a shell: pipes, links, devices, full disks."""

import json
import os
import shlex
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.histories.warm import python_words, run_shell
from tests.tables import cases
from tests.tools.conftest import Command, Ended, made
from tests.workflow.world import World

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


def assert_answered(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [{key: row[key] for key in ROWS[0]} for row in rows] == ROWS
    assert all(row["logprob"] < 0 for row in rows)


def shell(line: str, folder: Path, *, cold: bool = False) -> subprocess.CompletedProcess[str]:
    """A line of bash in which `score` stands for the command."""
    score = f"{shlex.join(python_words(cold=cold))} -m evaluation loglikelihood"
    return run_shell(line.replace("score ", f"{score} "), folder)


@pytest.mark.parametrize("line", cases("command_lines", "answers"))
def test_what_a_shell_gives(requests: Path, checkpoint: Path, line: str) -> None:
    done = shell(line.replace("CKPT", str(checkpoint)), requests.parent)
    assert done.returncode == 0, done.stderr
    assert_answered(requests.parent / "out.jsonl")
    assert "3 rows written to" in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["kept.jsonl", "later.jsonl", "some/new/folder/answers.jsonl"])
def test_a_link_stays_and_its_file_is_written(requests: Path, ask: Ask, name: str) -> None:
    (requests.parent / "kept.jsonl").write_text("old")
    target, output = requests.parent / name, requests.parent / "out.jsonl"
    output.symlink_to(name)
    ask(output).check(0)
    assert output.is_symlink()
    assert not target.is_symlink()
    assert_answered(target)


def test_a_device_stays(ask: Ask) -> None:
    for _ in range(2):
        ask("/dev/null").check(0)
        assert Path("/dev/null").is_char_device()


def test_a_pipe_whose_reader_ends(requests: Path, ask: Ask) -> None:
    pipe = requests.parent / "pipe"
    os.mkfifo(pipe)
    requests.write_text(TEXT * 5000)  # more than a pipe holds
    reader = threading.Thread(target=lambda: os.close(os.open(pipe, os.O_RDONLY)))
    reader.start()
    ended = ask(pipe)
    reader.join()
    ended.check(1, str(pipe), "Broken pipe", "some rows may have been written")
    assert pipe.is_fifo()


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


SELF = "is read by the same command"
OUTPUTS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a folder": (lambda f: made(f / "out", Path.mkdir), "is a folder, where a file is to be written"),
    "the requests": (lambda f: f / "in.jsonl", SELF),
    "the requests by a link": (lambda f: made(f / "link", lambda p: p.symlink_to("in.jsonl")), SELF),
    "the requests by another path": (lambda f: made(f / "more", Path.mkdir) / "../in.jsonl", SELF),
    "the requests by a hard link": (lambda f: made(f / "hard", lambda p: os.link(f / "in.jsonl", p)), SELF),
    "in a file": (lambda f: f / "in.jsonl/out.jsonl", "Not a directory"),
    "a socket": (lambda f: made(f / "socket", bind), "is a socket"),
    "a loop": (lambda f: made(f / "a", lambda p: p.symlink_to("a")), "Too many levels of symbolic links"),
    "a name too long": (lambda f: f / ("n" * 256), "File name too long"),
    "where nobody may write": (lambda f: Path("/sys/out.jsonl"), "/sys/out.jsonl: cannot be written"),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_that_are_refused(requests: Path, ask: Ask, name: str) -> None:
    make, words = OUTPUTS[name]
    output = make(requests.parent)
    before = {path: path.lstat().st_ino for path in requests.parent.rglob("*")}
    ended = ask(output)
    ended.check(1, str(output), words)
    assert "rows written" not in ended.out
    assert {path: path.lstat().st_ino for path in requests.parent.rglob("*")} == before
    assert requests.read_text() == TEXT


STDIN = [("--output in.jsonl < in.jsonl", SELF), ("--output out.jsonl <&-", "error: -: ")]


@pytest.mark.parametrize(("line", "said"), STDIN)
def test_standard_input_that_is_refused(
    requests: Path, checkpoint: Path, line: str, said: str
) -> None:
    done = shell(f"score {checkpoint} --requests - {line}", requests.parent)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert requests.read_text() == TEXT


def test_a_full_disk_names_the_file_and_promises_what_is_true(
    requests: Path, checkpoint: Path
) -> None:
    """A file may have 8192 bytes in that shell, and the answers have more."""
    requests.write_text(TEXT * 200)
    (requests.parent / "out.jsonl").write_text("old")
    line = f"ulimit -f 8; score {checkpoint} --requests <(cat in.jsonl) --output out.jsonl"
    done = shell(line, requests.parent, cold=True)  # a server's fork has the server's limits
    assert done.returncode == 1, done.stderr
    sentence = done.stderr.splitlines()[-1]
    assert "error: out.jsonl: cannot be written (File too large), nothing was written" in sentence
    assert "kept" not in sentence
    assert (requests.parent / "out.jsonl").read_text() == "old"
    assert sorted(path.name for path in requests.parent.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_answers_into_head(requests: Path, checkpoint: Path) -> None:
    requests.write_text(TEXT * 2000)
    line = f"score {checkpoint} --requests in.jsonl --output - | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = shell(line, requests.parent)
    assert done.returncode in (0, 141), done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


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
    assert "was trained on sequences of 64 tokens" in caplog.text
    assert "do not fit" not in caplog.text
    ask(output, "--max-length", 1).check(0)
    row["continuation_tokens"] = [2, 3]
    requests.write_text(json.dumps(row) + "\n")
    ask(output, "--max-length", 1).check(1, "line 1", "more than the context window of 1")


def test_text_and_its_tokenizer(requests: Path, ask: Ask) -> None:
    requests.write_text('{"context": "the cat \\u0000", "continuation": " sat"}\n')
    output = requests.parent / "out.jsonl"
    ask(output).check(0)
    assert json.loads(output.read_text())["context"] == "the cat \0"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("nowhere/at/all", "no such folder", id="a folder that is not there"),
        pytest.param("hf", "it has no vocabulary", id="a folder without a tokenizer"),
        pytest.param("config.yaml", "config.yaml", id="a file"),
    ],
)
def test_what_holds_no_tokenizer(
    world: World, requests: Path, ask: Ask, name: str, words: str
) -> None:
    requests.write_text('{"context": "the cat", "continuation": " sat"}\n')
    ended = ask(requests.parent / "out.jsonl", "--tokenizer", world.folder / name)
    ended.check(1, words)
