"""The process of one program: limits itself, runs the program with its tests, and reports how that went.

It imports nothing but parts of the standard library that start quickly: every program pays for them. The
job is read from standard input. Lines of the report are `begin` before the program starts, the number of
each test before it begins, and at last `end`, `wrong` or `unusable` with a reason, or `refused`.
"""

import ctypes
import marshal
import os
import resource
import sys
from collections.abc import Callable
from ctypes import c_long
from typing import Any

_PROGRAM, _TESTS = "<program>", "<tests>"
_CANDIDATE = "__candidate__"
_ONLY_PARSE = 0x400
"""PyCF_ONLY_AST of `compile`."""
_IDLE = (
    "Import",
    "ImportFrom",
    "FunctionDef",
    "AsyncFunctionDef",
    "ClassDef",
    "Assign",
    "AnnAssign",
)
_LONGEST = 240
_MOST_OPEN = 32
_FRAMES = 6
"""Frames below the program, which do not count towards the recursion limit."""

_DIE_WITH_PARENT, _SET_SECCOMP, _NO_NEW_PRIVILEGES = 1, 22, 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""Number of file rights that each version of Landlock knows; later versions know 16."""

_LIBC = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def main() -> None:
    """Run the job of standard input; write the report to what is standard output at first, and exit."""
    write, leave = os.write, os._exit  # the program may replace them
    with open(0, "rb", closefd=False) as file:
        job = marshal.load(file)
    report = os.dup(1)
    for standard in (0, 1):
        os.dup2(2, standard)  # /dev/null
    refusal = _confine(job)
    last = f"refused {refusal}" if refusal else _judge(job, lambda line: write(report, line))
    write(report, f"{last}\n".encode("utf-8", "replace"))
    leave(0)


def _confine(job: dict[str, Any]) -> str:
    """Limit this process for good; return why the filter is refused, or an empty text."""
    _LIBC.prctl(_DIE_WITH_PARENT, c_long(9), *[c_long(0)] * 3)
    if os.getppid() != job["parent"]:
        os._exit(1)
    with open("/proc/self/statm") as file:
        present = int(file.read().split()[0]) * resource.getpagesize()
    seconds, memory = job["cpu_seconds"], present + (job["memory_mb"] << 20)
    for kind, most, hard in (
        (resource.RLIMIT_CPU, seconds, seconds + 1),  # first a signal of its own
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NOFILE, _MOST_OPEN, _MOST_OPEN),
    ):
        allowed = resource.getrlimit(kind)[1]
        if allowed != resource.RLIM_INFINITY:
            most, hard = min(most, allowed), min(hard, allowed)
        resource.setrlimit(kind, (most, hard))
    sys.setrecursionlimit(sys.getrecursionlimit() + _FRAMES)
    sys.meta_path.append(_Numpy(job["packages"]))
    _LIBC.prctl(_NO_NEW_PRIVILEGES, c_long(1), *[c_long(0)] * 3)
    if job["readable"]:
        _read_only(job["readable"])
    rules = _Filter(len(job["filter"]) // 8, job["filter"])
    if rules.length and _LIBC.prctl(_SET_SECCOMP, c_long(2), ctypes.byref(rules)):
        return f"seccomp: {os.strerror(ctypes.get_errno())}"
    return ""


class _Numpy:
    """Finds numpy, and no other package of the environment: verdicts do not depend on what is installed."""

    def __init__(self, folder: str) -> None:
        self._folder, self._finder = folder, sys.meta_path[-1]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return self._finder.find_spec(name, [self._folder]) if name == "numpy" else None


def _read_only(paths: list[str]) -> None:
    """Let Landlock forbid every access to files but reading these, where the kernel has it."""

    def call(number: int, *values: int | bytes | None) -> int:
        numbers = [c_long(value) if isinstance(value, int) else value for value in values]
        return int(_LIBC.syscall(c_long(number), *numbers))

    if (version := call(_CREATE_RULESET, None, 0, 1)) < 1:
        return
    rights = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    rules = call(_CREATE_RULESET, rights.to_bytes(8, sys.byteorder), 8, 0)
    for path in paths:
        allowed = _READ_FILE | (_READ_FOLDER if os.path.isdir(path) else 0)
        place = os.open(path, os.O_PATH)
        rule = allowed.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
        call(_ADD_RULE, rules, 1, rule, 0)
        os.close(place)
    call(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _judge(job: dict[str, Any], tell: Callable[[bytes], object]) -> str:
    """Run the program and its tests; return the last line of the report."""
    run, where, begun = exec, "", False
    texts: list[str] = job["tests"]
    try:
        module = type(sys)("program")
        module.__file__ = _PROGRAM
        sys.modules["program"] = sys.modules["__main__"] = module
        names = vars(module)
        steps = _steps(texts, job["entry_point"])
        setup = _code(job["setup"], "<setup>")
        try:
            run(setup, names)
            setup = _code("", "<setup>")
        except NameError:  # it needs names of the program
            pass
        program = job["program"].decode("utf-8", "surrogatepass")
        tell(b"begin\n")
        begun = True
        run(_code(program, _PROGRAM), names)
        run(setup, names)
        for number, step in enumerate(steps):
            where = texts[number] if job["listed"] else ""
            tell(b"%d\n" % number)
            run(step, names)
    except BaseException as reason:  # noqa: BLE001 - a program may raise anything
        try:
            said = _described(reason, where, texts[0])
        except BaseException:  # noqa: BLE001 - its text may be hostile, or memory is out
            said = "an exception without a text"
        return f"{'wrong' if begun else 'unusable'} {said}"
    return "end"


def _steps(texts: list[str], entry_point: str) -> list[Any]:
    """Return the tests' code; what they import is imported, so that only they are to blame if it fails."""
    trees = [compile(text, _TESTS, "exec", _ONLY_PARSE, dont_inherit=True) for text in texts]
    nodes = [node for tree in trees for node in tree.body]
    imports = [node for node in nodes if type(node).__name__ in ("Import", "ImportFrom")]
    exec(compile(type(trees[0])(imports, []), _TESTS, "exec", dont_inherit=True), {})
    codes = [compile(tree, _TESTS, "exec", dont_inherit=True) for tree in trees]
    if entry_point and any(getattr(node, "name", "") == "check" for node in nodes):
        codes.insert(0, _code(f"{_CANDIDATE} = {entry_point}", "<call>"))
        codes.append(_code(f"check({_CANDIDATE})", "<call>"))
    elif all(type(node).__name__ in _IDLE for node in nodes):
        raise ValueError("they run nothing; `check` needs the document's `entry_point`")
    return codes


def _code(source: str, file: str) -> Any:
    return compile(source, file, "exec", dont_inherit=True)


def _described(reason: BaseException, where: str, tests: str) -> str:
    """Return a sentence on one line: the assert that failed, and the exception."""
    files, trace = [], reason.__traceback__
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        if files[-1] == _TESTS and not where:
            where = tests.split("\n")[trace.tb_lineno - 1].strip()
        trace = trace.tb_next
    text = " ".join(str(reason)[: 4 * _LONGEST].split())[:_LONGEST]
    kind = type(reason).__name__
    if isinstance(reason, AssertionError) and files[-1:] == [_TESTS]:
        said = f"it is false ({text})" if text else "it is false"
    else:
        said = f"{kind}: {text}" if text else kind
    if _PROGRAM in files:
        said = f"the program raises {said}"
    if isinstance(reason, PermissionError):
        said += " (the sandbox does not allow it)"
    return f"`{' '.join(where.split())[:_LONGEST]}`: {said}" if where else said


if __name__ == "__main__":
    main()
