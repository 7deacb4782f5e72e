"""Programs of BigCodeBench and DS-1000, which use the packages of an environment that the user names.

olmo-eval runs each in a container, by a script of its own around the program and its tests. The same
script runs in this project's sandbox, but for what starts or limits processes.
"""

import ast
import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from evaluation.providers.adapters.contract import Refused
from evaluation.providers.adapters.data import package_files

_OLDEST = (3, 10)
"""The version that the sandbox's own code needs."""

SETUP = "import resource\nresource.setrlimit = lambda *limits: None\n"
"""The sandbox has limits of its own, which no program may widen."""

_END_OF_TESTS = """if test_result.failures or test_result.errors:
    sys.exit(1)
sys.exit(0)
"""
_RAISED = """for _, _trace in test_result.failures + test_result.errors:
    raise Exception(_trace.strip().splitlines()[-1])
"""


def split_script(code: str) -> tuple[str, str]:
    """Return the program of a script, and what runs its tests.

    Args:
        code: What olmo-eval's scorer has executed: of BigCodeBench a script with the solution in `_code`,
            of DS-1000 one that writes the program, in `_TEST_CODE`, and another script into a file and
            starts it.

    Returns:
        The statement that assigns the program, and the script that reads it; it raises where tests fail.

    Raises:
        ValueError: The script is another than those of this version of olmo-eval.
    """
    tree = ast.parse(code)
    named = {
        node.targets[0].id: node
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    if "_TEST_CODE" in named:
        inner = ast.literal_eval(named["_inner"].value)
        return ast.unparse(named["_TEST_CODE"]), inner
    if "_code" in named and code.endswith(_END_OF_TESTS):
        program = ast.get_source_segment(code, named["_code"]) or ""
        tests = code.removesuffix(_END_OF_TESTS) + _RAISED
        return program, SETUP + tests.replace(program + "\n", "", 1)
    raise ValueError("a scorer runs a script that is not known")


def folder_of_packages(python: str) -> Path:
    """Return the folder of the packages that the environment of an interpreter has.

    Args:
        python: Path of the interpreter.

    Returns:
        The folder, with at least one package.

    Raises:
        Refused: There is no interpreter, it is too old, or there is no package.
    """
    version, folder = _about(python)
    found = package_files(Path(folder))
    why = "is no interpreter of Python"
    if version is not None and version < _OLDEST:
        why = f"is Python {'.'.join(map(str, version))}, older than {'.'.join(map(str, _OLDEST))}"
    elif version is not None:
        why = f"has no packages in {folder}"
    if version is None or version < _OLDEST or not found:
        raise Refused(
            f"`python` names {python}, which {why}; name the Python of an environment, as "
            "/path/to/environment/bin/python"
        )
    return Path(folder)


def _about(python: str) -> tuple[tuple[int, ...] | None, str]:
    """Return an interpreter's version, None of anything else, and the folder of its packages."""
    code = "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_path('purelib'))"
    try:
        done = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, check=True, timeout=60
        )
        major, minor, folder = done.stdout.strip().split(" ", 2)
        return (int(major), int(minor)), folder
    except (OSError, subprocess.SubprocessError, ValueError):
        return None, ""


def checksum_of_packages(files: Sequence[Path]) -> str:
    """Return the checksum of the names and versions of packages.

    Args:
        files: A file of each package, by `package_files`.

    Returns:
        The checksum, in hexadecimal digits.
    """
    names = "\n".join(path.parent.name for path in files)
    return hashlib.sha256(names.encode()).hexdigest()
