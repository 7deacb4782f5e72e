"""Odd data and templates, case by case: one sentence that names row, field and expression."""

import datetime
import gzip
import json
import math
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.errors import ConfigError, EvaluationError, SourceError
from evaluation.prefill import limits
from evaluation.prefill.cloze import prefill_task
from evaluation.prefill.limits import row_limits
from evaluation.prefill.slices import prefill_slice
from evaluation.prefill.sources import locate
from evaluation.prefill.templates import compile_expression, compile_template
from evaluation.settings.sources import Source
from tests.prefill.plans import make_plan

VALUES = {
    "ratio": math.nan,
    "x": "a" * 40 + "b",
    "y": 7,
    "none": None,
    "raw": b"a",
    "day": datetime.date(2024, 1, 2),
}

TEMPLATES: dict[str, tuple[str, str]] = {
    "division": ("{{ 1 / (y - 7) }}", "ZeroDivisionError"),
    "type": ("{{ x + 1 }}", "can only concatenate str"),
    "attribute": ("{{ x.nothing }}", "has no attribute 'nothing'.*fields are"),
    "index": ("{{ [][y] }}", "has no element 7"),
    "recursion": ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"),
    "a broken regular expression": ("{{ x | regex_replace('(', '') }}", "unterminated subpattern"),
    "a missing group": ("{{ x | regex_replace('a', '\\\\9') }}", "invalid group reference"),
    "a slow regular expression": ("{{ x | regex_replace('(a+)+$', '') }}", "seconds for one row"),
    "a long range": ("{{ range(10**9) | join }}", "Range too big"),
    "nested ranges": (
        "{% for a in range(10**5) %}{% for b in range(10**5) %}{% endfor %}{% endfor %}",
        "seconds for one row",
    ),
    "a long power": ("{{ y ** (y ** 10) }}", "seconds for one row"),
    "ten gigabytes": ("{{ 'a' * 10**10 }}", "gigabyte of memory"),
    "a long list": ("{{ [x] * 10**10 }}", "gigabyte of memory"),
    "a wide format": ("{{ '%10000000000d' % y }}", "gigabyte of memory"),
    "a wide indent": ("{{ x | indent(10**10, true) }}", "gigabyte of memory"),
    "doubled sixty times": (
        "{% set n = namespace(v=x) %}{% for i in range(60) %}{% set n.v = n.v ~ n.v %}{% endfor %}",
        "gigabyte of memory|seconds for one row",
    ),
    "a hundred million letters": ("{{ x[0] * 10**8 }}", "100,000,000 characters"),
    "a batch filled up": ("{{ x | batch(10**10, y) | list }}", "gigabyte of memory"),
    "the sandbox": ("{{ x.__class__.__mro__ }}", "unsafe"),
    "an include": ("{% include 'y' %}", "no loader"),
    "a null": ("{{ none }}", "is null; write"),
    "not a number": ("{{ ratio }}", "not a number"),
    "a list": ("{{ [y] }}", "is a list; write"),
    "bytes": ("{{ raw }}", "is binary"),
    "a function": ("{{ x.upper }}", "is a builtin_function_or_method, not a text or number"),
    "random words": ("{{ lipsum() }}", "'lipsum' is undefined"),
    "a draw by name": ("{{ [[x]] | map('random') | first }}", "'random'"),
    "a date": ("{{ day }}", "is a date; write `{{ field.isoformat.. }}`"),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_that_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 1.0)
    source, expected = TEMPLATES[name]
    with (
        pytest.raises(EvaluationError, match=rf"(?s)^tasks\.t\.context: .*{expected}") as raised,
        row_limits(),
    ):
        compile_template("tasks.t.context", source)(VALUES)
    assert source.replace("\\", "\\\\")[:40] in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("source", ["{{ [x, y] | random }}", "{{ '12' | random }}"])
def test_templates_that_draw(source: str) -> None:
    with pytest.raises(ConfigError, match=r"^k: .*draws at random.* same whenever they are made"):
        compile_template("k", source)


@pytest.mark.parametrize("source", ["x.index('z')", "1 / 0", "[1] * 10**10", "{}['a']"])
def test_expressions_that_fail(source: str) -> None:
    with pytest.raises(SourceError, match=r"^k: "), row_limits():
        compile_expression("k", source)(VALUES)


@pytest.mark.parametrize(
    "source", ["{{" * 1000, "{{ " + "(" * 5000 + " }}", "{% for %}", "{{ x | no }}"]
)
def test_templates_that_do_not_parse(source: str) -> None:
    with pytest.raises(ConfigError, match=r"^k: not a Jinja2 template") as raised:
        compile_template("k", source)
    assert len(str(raised.value)) < 800


def test_limits_are_lifted_behind_a_row() -> None:
    import resource
    import signal

    before = resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGALRM)
    with pytest.raises(MemoryError), row_limits():
        bytes(2 << 30)
    assert (resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


GOOD = {"text": "a fox", "question": "Who?", "choices": ["a fox", "a dog"], "label": 1}


def make_task(tmp_path: Path, tokenizer: Path, data: Path) -> None:
    task = {"choices": "choices", "gold": "label", "context": "{{ question }}"}
    tasks = {"t": task | {"files": (str(data),)}}
    prefill_task(make_plan(tmp_path / "c", tokenizer, tasks=tasks, sequence_length=64), "t")


def make_slice(tmp_path: Path, tokenizer: Path, data: Path, text: str = "text") -> None:
    slices = {"s": {"files": (str(data),), "tokens": 32, "text": text}}
    prefill_slice(make_plan(tmp_path / "c", tokenizer, slices=slices), "s")


COLUMNS: dict[str, tuple[pa.Array, str]] = {
    "binary": (pa.array([b"one", b"two"]), "row 0: the field 'text' is binary"),
    "large binary": (
        pa.array([b"1", b"2"], pa.large_binary()),
        "row 0: the field 'text' is binary",
    ),
    "numbers": (pa.array([1, 2]), "row 0: the text is a number, not text"),
    "dates": (pa.array([datetime.date(2024, 1, 2)] * 2), "row 0: the text is a date, not text"),
    "lists": (pa.array([["a"], ["b"]]), "row 0: the text is a list, not text"),
    "binary in lists": (pa.array([[b"a"], [b"b"]]), "row 0: the field 'text' is binary"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_that_are_no_text(name: str, tmp_path: Path, fast_folder: Path) -> None:
    column, expected = COLUMNS[name]
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=rf"a\.parquet, {expected}"):
        make_slice(tmp_path, fast_folder, tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["binary", "dates", "binary in lists"])
def test_templates_write_no_such_column(name: str, tmp_path: Path, fast_folder: Path) -> None:
    pq.write_table(pa.table({"text": COLUMNS[name][0]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"row 0: .*(is binary|is a date)"):
        make_slice(tmp_path, fast_folder, tmp_path / "a.parquet", "{{ text }}")


def test_binary_columns_of_a_task(tmp_path: Path, fast_folder: Path) -> None:
    row = GOOD | {"question": b"Who?", "unused": b"\xff"}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"t/0: the field 'question' is binary"):
        make_task(tmp_path, fast_folder, tmp_path / "a.parquet")
    pq.write_table(pa.Table.from_pylist([row | {"question": "Who?"}]), tmp_path / "a.parquet")
    make_task(tmp_path, fast_folder, tmp_path / "a.parquet")


def parquet_bytes(tmp_path: Path) -> bytes:
    pq.write_table(pa.Table.from_pylist([GOOD] * 100), tmp_path / "x.parquet", compression="zstd")
    return (tmp_path / "x.parquet").read_bytes()


def flipped(content: bytes) -> bytes:
    middle = len(content) // 3
    return (
        content[:middle]
        + bytes(255 - byte for byte in content[middle : middle + 20])
        + content[middle + 20 :]
    )


PACKED = gzip.compress(lines(*[GOOD | {"n": n} for n in range(300)]))

FILES: dict[str, tuple[str, Callable[[Path], bytes], str]] = {
    "cut gzip": ("a.jsonl.gz", lambda _: PACKED[:-30], "a.jsonl.gz: cannot be unpacked"),
    "flipped gzip": ("a.jsonl.gz", lambda _: flipped(PACKED), "a.jsonl.gz: "),
    "plain text called gzip": ("a.txt.gz", lambda _: b"text", "cannot be unpacked"),
    "a raw deflate stream": ("a.jsonl.gz", lambda _: PACKED[:10] + zlib.compress(b"x"), "a.jsonl.gz: "),
    "cut Parquet": ("a.parquet", lambda p: parquet_bytes(p)[:-50], "not readable as Parquet"),
    "flipped zstd": ("a.parquet", lambda p: flipped(parquet_bytes(p)), "not readable as Parquet"),
    "empty Parquet": ("a.parquet", lambda _: b"", "not readable as Parquet"),
    "deep JSON lines": ("a.jsonl", lambda _: b"[" * 100_000, "line 1 is not valid JSON"),
    "a deep array": ("a.json", lambda _: b"[" * 100_000, "the file is not valid JSON"),
    "endless digits": ("a.jsonl", lambda _: b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
    "numbers for rows": ("a.jsonl", lambda _: b"5\n", "row 1 is not an object"),
    "nothing": ("a.jsonl", lambda _: b"", "has no rows"),
    "empty lines": ("a.jsonl", lambda _: b"\n\n", "has no rows"),
    "an empty array": ("a.json", lambda _: b"[]", "has no rows"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(name: str, tmp_path: Path, fast_folder: Path) -> None:
    file, content, expected = FILES[name]
    (tmp_path / file).write_bytes(content(tmp_path))
    with pytest.raises(SourceError, match=expected) as raised:
        make_task(tmp_path, fast_folder, tmp_path / file)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "c/cf_tasks").exists() or not list((tmp_path / "c").rglob("t"))


def link(path: Path, target: Path) -> None:
    path.symlink_to(target, target_is_directory=target.is_dir())


PLACES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "a pipe": (lambda f: os.mkfifo(f / "a.jsonl"), "a.jsonl", "is a pipe, socket or device"),
    "a link to a device": (
        lambda f: link(f / "a.jsonl", Path("/dev/zero")),
        "a.jsonl",
        "is a pipe, socket or device",
    ),
    "a folder called like a file": (lambda f: (f / "a.jsonl").mkdir(), "a.jsonl", "has no split"),
    "a folder called like Parquet": (lambda f: (f / "a.parquet").mkdir(), "*.parquet", "has no split"),
    "links in circles": (
        lambda f: [link(f / name, f) for name in "xyz"],
        "**/*.jsonl",
        "leads to .* again; remove that link",
    ),
    "a link to nowhere": (lambda f: link(f / "a.jsonl", f / "gone"), "a.jsonl", "files: "),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_odd_places(name: str, tmp_path: Path) -> None:
    make, pattern, expected = PLACES[name]
    make(tmp_path)
    with pytest.raises(SourceError, match=expected):
        list(locate(Source(files=(str(tmp_path / pattern),)), {}).rows())


def test_a_pipe_as_a_mirror(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(SourceError, match=r"a\.jsonl: cannot be read .it is a pipe"):
        list(locate(Source(dataset="a/b"), {"a/b": str(tmp_path / "a.jsonl")}).rows())
    with pytest.raises(SourceError, match=r"has no split"):
        list(locate(Source(dataset="a/b"), {"a/b": str(tmp_path)}).rows())


@pytest.mark.parametrize("file", ["a.jsonl", "a.parquet"])
def test_unreadable_is_not_damaged(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).write_bytes(lines(GOOD))

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("evaluation.prefill.files.check_regular", refuse)
    with pytest.raises(SourceError, match=rf"{file}: cannot be read .Permission denied"):
        list(locate(Source(files=(str(tmp_path / file),)), {}).rows())
