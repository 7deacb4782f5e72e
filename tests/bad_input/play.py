"""Plays a case, and judges how it ended."""

import contextlib
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.bad_input.cases import Case
from tests.bad_input.workshop import State, Workshop, change, states, variables
from tests.histories.runner import ROOT, SNAKEFILE
from tests.histories.server import CLIENT

MEMORY = 3 << 30
"""Bytes that a case's processes may hold together, beside what they share with files."""
LONGEST = 2000
"""Letters of a line that a person still reads."""
PROTECTED = ("ckpts/", "data/", "suites/", "tokenizer/", "hf/", "config.yaml", "results/scores/")
"""What no command may change or remove."""
UNSEEN = ("home/", ".snakemake/", "tmp/pymp-", "tmp/torchelastic")
"""What libraries leave."""
MEASURED = ("nats_per_token", "accuracy", "gold_bits_per_byte", "rate", "pass_rate")
INNER = re.compile(
    r"KeyError|TypeError|AttributeError|IndexError|ValueError|NoneType|' object has no attribute|<class '|"
    r"object at 0x|\[Errno|list index out of range|/tmp[a-z0-9_]{8}\b|\.tmp\b|__[a-z]+__\b"
)
"""What only this project's authors understand."""
SHELL = """
shopt -s expand_aliases globstar
evaluation() {{ {python} -m evaluation "$@"; }}
snakemake() {{ {python} -m snakemake -s {snakefile} "$@"; }}
"""


@dataclass(frozen=True)
class Outcome:
    """The end of a case; `verdict` is `right`, or the class of its failure."""

    verdict: str
    detail: str
    output: str


def play(case: Case, shop: Workshop, socket: str) -> Outcome:
    """Changes the world, runs the command, judges, and puts the world back."""
    shop.restore()
    try:
        change(shop.folder, case.do)
    except Exception as error:  # noqa: BLE001 - the table is wrong, not what it tests
        return Outcome("table", repr(error), "")
    before = states(shop.folder)
    try:
        code, output, stopped = _run(case, shop.folder, socket)
        found = _faults(case, shop, before, code, output)
        verdict, detail = stopped or next(found, ("right", ""))
    finally:
        _unmount(shop.folder)
        if any("chmod" in line or "umask" in line for line in (*case.do, case.run)):
            subprocess.run(["chmod", "-R", "u+rwX", str(shop.folder)], check=False)
    return Outcome(verdict, detail, output)


def _run(case: Case, folder: Path, socket: str) -> tuple[int, str, tuple[str, str] | None]:
    environment = {**os.environ, **variables(folder), "HISTORIES_SOCKET": socket}
    environment |= dict.fromkeys(("PYTHONPATH", "ROOT"), str(ROOT)) | {"PYTHONWARNINGS": "ignore"}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"), "1")
    python = sys.executable if case.cold else str(CLIENT)
    command = ["bash", "-c", SHELL.format(python=python, snakefile=SNAKEFILE) + case.run]
    with tempfile.TemporaryFile() as output:
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
        with subprocess.Popen(
            command, cwd=folder, env=environment, process_group=0, **streams
        ) as process:
            with _watched(process.pid, folder, case.seconds) as stopped:
                code = process.wait()
            _end(process.pid, folder)
        output.seek(0)
        text = output.read(1 << 20).decode(errors="backslashreplace")
    return code, text, stopped[0] if stopped else None


@contextlib.contextmanager
def _watched(group: int, folder: Path, seconds: float) -> Iterator[list[tuple[str, str]]]:
    """Ends the case's processes when they take too long or too much memory."""
    stopped: list[tuple[str, str]] = []
    over = threading.Event()

    def watch() -> None:
        end = time.monotonic() + seconds
        while not over.wait(0.5):
            held = sum(map(_memory, _processes(group, folder)))
            if held > MEMORY:
                stopped.append(("memory", f"{held >> 20} MB"))
            elif time.monotonic() > end:
                stopped.append(("hang", f"more than {seconds:.0f} s"))
            if stopped:
                _end(group, folder)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield stopped
    finally:
        over.set()
        thread.join()


def _processes(group: int, folder: Path) -> list[psutil.Process]:
    """Of the group, at work in the folder, or begun with its environment; never this one."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and (
                os.getpgid(process.pid) == group
                or process.cwd().startswith(str(folder))
                or process.environ().get("TMPDIR", "").startswith(f"{folder}/")
            ):
                found.append(process)
    return found


def _memory(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        held = process.memory_info()
        return int(held.rss - held.shared)
    return 0


def _end(group: int, folder: Path) -> None:
    for process in _processes(group, folder):
        with contextlib.suppress(psutil.Error):
            process.kill()


def _unmount(folder: Path) -> None:
    """Takes off what a case mounted and could not take off itself."""
    for line in Path("/proc/mounts").read_text().splitlines():
        if line.split()[1].startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", line.split()[1]], check=False)


def _faults(
    case: Case, shop: Workshop, before: dict[str, State], code: int, output: str
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with an end, the worst first."""
    after = states(shop.folder)
    if "Traceback (most recent call last)" in output:
        yield "traceback", _last_line(output)
    if code < 0 or code > 128:
        yield "crash", f"exit code {code}"
    yield from _left(before, after, refused=code != 0)
    yield from _lost(before, after)
    if case.end == "warned" and any(word not in output for word in case.words):
        yield "silent", f"does not say {case.words}: {_last_line(output)}"
    if case.end == "refused" or (code != 0 and case.end != "fine"):
        yield from _unclear(case, code, output)
    elif code != 0:
        yield "refused", _last_line(output)
    elif not case.other_numbers:
        yield from _numbers(shop, before, after)


def _unclear(case: Case, code: int, output: str) -> Iterator[tuple[str, str]]:
    """Yield why a refusal is no sentence with the words of the case."""
    if code not in (1, 2, 3):
        yield "code" if code else "silent", f"exit code {code}: {_last_line(output)}"
    if missing := [word for word in case.words if word not in output]:
        yield "unclear", f"does not say {', '.join(map(repr, missing))}: {_last_line(output)}"
    if (found := INNER.search(output)) and found[0] not in " ".join((*case.do, case.run)):
        yield "unclear", f"says {found[0]!r}: {_last_line(output)}"
    if "\x1b" in output or "\x07" in output:
        yield "unclear", "control characters go to the terminal as they are"
    longest = max(output.splitlines(), key=len, default="")
    if len(longest) > LONGEST:
        yield "unclear", f"a line of {len(longest)} letters: {longest[:200]}"
    if not output.strip():
        yield "unclear", "says nothing"


def _left(
    before: dict[str, State], after: dict[str, State], *, refused: bool
) -> Iterator[tuple[str, str]]:
    """What a command leaves that nobody wants: temporary files, and output of a refused one."""
    for name in sorted(set(after) - set(before)):
        is_output = name == "planted" or name.startswith("out")
        is_temporary = re.search(r"^tmp/|\.tmp|\.part|(^|/)tmp[a-z0-9_]{8}", name)
        if stat.S_ISDIR(after[name][0]) or name.startswith(UNSEEN):
            continue
        if is_temporary or (refused and is_output):
            yield "left", f"leaves {name}"


def _lost(before: dict[str, State], after: dict[str, State]) -> Iterator[tuple[str, str]]:
    """What was the user's, or a score that cannot be made again; scores may be packed with others."""
    packed = {os.path.dirname(name) for name in set(after) - set(before)}
    for name, state in before.items():
        if not name.startswith(PROTECTED) or (name.startswith("results/") and name in after):
            continue
        if name not in after and os.path.dirname(name) not in packed:
            yield "lost", f"removes {name}"
        if name in after and state[:2] != after[name][:2]:
            yield "lost", f"changes {name}"


def _numbers(
    shop: Workshop, before: dict[str, State], after: dict[str, State]
) -> Iterator[tuple[str, str]]:
    """Those of every tier file that was written, beside those of the untouched world."""
    for kept in sorted((shop.copy / "results").rglob("tier*.json")):
        name = str(kept.relative_to(shop.copy))
        if name in after and after[name] != before.get(name):
            paths = (kept, shop.folder / name)
            old, new = (_measured(json.loads(path.read_text())) for path in paths)
            if old != new:
                yield "numbers", f"{name}: {new} in place of {old}"


def _measured(content: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a tier file that scores decide on."""
    inner = {key: _measured(value) for key, value in content.items() if isinstance(value, dict)}
    own = {key: value for key, value in content.items() if key in MEASURED}
    return own | {key: value for key, value in inner.items() if value}


def _last_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    chosen = [line for line in lines if line.startswith("error: ")] or lines or [""]
    return chosen[-1][:400]
