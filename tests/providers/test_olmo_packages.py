"""Programs of BigCodeBench and DS-1000 that use packages: judged as olmo-eval's scorers judge what Python says.

The rows are written after those datasets, by somebody who had not read the sandbox's code. Programs run with this
project's own packages, or with those of the environment that EVAL_PACKAGES_PYTHON names.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from evaluation.errors import SourceError
from tests.providers.conftest import reported, verified
from tests.providers.olmo_eval import settings, theirs
from tests.providers.test_olmo_programs import HEADLINE, judged
from tests.tables import sample
from tests.verification.sandbox.references import needs_sandbox
from tests.workflow.world import World, ask_for_answers

Row = dict[str, Any]

PYTHON = os.environ.get("EVAL_PACKAGES_PYTHON", sys.executable)
PLACES = {
    "bigcodebench": "bigcode/bigcodebench/default/v0.1.2.parquet",
    "ds1000": "xlangai/DS-1000/default/test.parquet",
}
OFTEN_MISSING = {
    name: f"import {name}"
    for name in ("sklearn", "seaborn", "requests", "pytz", "openpyxl", "flask", "bs4")
} | {"gone in pandas 2": "import pandas; pandas.DataFrame.append"}
"""What a row's text names, and a program that fails where it is not there."""


CONTEXT = '''{imports}
import copy
import tokenize, io


def generate_test_case(test_case_id):
    def generate_ans(data):
{answer}

    def define_test_input(test_case_id):
{inputs}

    test_input = define_test_input(test_case_id)
    expected_result = generate_ans(copy.deepcopy(test_input))
    return test_input, expected_result


def exec_test(result, expected):
    try:
        {compares}
        return 1
    except:
        return 0


exec_context = r"""
{imports}
{given}
[insert]
"""


def test_execution(solution: str):
    code = exec_context.replace("[insert]", solution)
    for i in range(1):
        test_input, expected_result = generate_test_case(i + 1)
        test_env = {{"test_input": test_input}}
        exec(code, test_env)
        assert exec_test(test_env["result"], expected_result)
'''
COMPARES = {
    "numbers": "np.testing.assert_allclose(np.asarray(result, float), np.asarray(expected, float))",
    "frames": "pd.testing.assert_frame_equal(result, expected, check_dtype=False)",
}


def rows_of(dataset: str) -> dict[str, Row]:
    """Those whose packages are there; a quarter of them, unless all references are asked for."""
    path = Path(__file__).parent / "packages" / f"{dataset}.yaml"
    found: dict[str, Row] = yaml.safe_load(path.read_text(encoding="utf-8"))
    missing = [name for name, program in OFTEN_MISSING.items() if not _runs(program)]
    there = {
        name: row for name, row in found.items() if not any(m in f"{name} {row}" for m in missing)
    }
    return dict(sample(4, list(there.items())))


def _runs(program: str) -> bool:
    return subprocess.run([PYTHON, "-c", program], capture_output=True, check=False).returncode == 0


def bigcodebench(number: int, name: str, row: Row) -> Row:
    head = f"{row['imports']}\n\ndef task_func({row['signature']}):\n"
    setup = textwrap.indent(f"{row['setup']}\n", "    ") if row["setup"] else ""
    tests = textwrap.indent(row["tests"], " " * 8)
    cases = f"class TestCases(unittest.TestCase):\n{setup}    def test_case_1(self):\n{tests}\n"
    return {
        "task_id": f"BigCodeBench/{number}",
        "complete_prompt": f'{head}    """\n    {name}\n    """\n',
        "instruct_prompt": name,
        "canonical_solution": answer("bigcodebench", row["right"]),
        "code_prompt": head,
        "test": f"import unittest\n{cases}",
        "entry_point": "task_func",
    }


def _context_of(row: Row) -> str:
    if "context" in row:
        return str(row["context"])
    parts = {name: textwrap.indent(row[name], " " * 8) for name in ("answer", "inputs")}
    compares = COMPARES[row.get("compares", "numbers")]
    own = {"imports": row["imports"], "given": row["given"], "compares": compares, **parts}
    return CONTEXT.format(**own) + ("\n\n" + row["string"] if "string" in row else "")


def _prompt_of(name: str, row: Row) -> str:
    if "prompt" in row:
        return str(row["prompt"])
    return (
        f"Problem:\n{name}\n\nA:\n<code>\n{row['imports']}\n</code>\n"
        "result = ... # put solution in this variable\nBEGIN SOLUTION\n<code>\n"
    )


def ds1000(number: int, name: str, row: Row) -> Row:
    return {
        "prompt": _prompt_of(name, row),
        "reference_code": row["right"],
        "metadata": {"problem_id": number, "library": row["library"]},
        "code_context": _context_of(row),
    }


@needs_sandbox
def test_a_task_from_the_suite_to_its_verdicts(
    world: World, mirrors: dict[str, str], tmp_path: Path
) -> None:
    asked = theirs("bigcodebench:olmo3base", limit=2, python=os.path.relpath(sys.executable))
    plan = ask_for_answers(world, {"theirs": asked}, **settings(mirrors))
    meta = reported(plan, "theirs")
    assert meta["golds"] == {HEADLINE: 1.0}
    assert len(meta["packages"]) == 64
    texts = ["    return Counter(text.split())\n", "    return None\n"]
    completions = [("bigcodebench:olmo3base/0", text) for text in texts]
    rows, summary = verified(plan, "theirs", tmp_path, completions)
    verdicts = [row["verdicts"][HEADLINE] for row in rows]
    assert [verdict["credit"] for verdict in verdicts] == [1, 0]
    assert summary["verifiers"][HEADLINE]["unguarded"] == 2
    assert verdicts[1]["reason"] == "Exception: AssertionError: False is not true"
    assert summary["primary"] == HEADLINE


@pytest.mark.parametrize("python", [__file__, "/bin", "nowhere/bin/python"])
def test_what_is_no_python_is_refused_at_prefill(
    world: World, mirrors: dict[str, str], python: str
) -> None:
    asked = theirs("ds1000:olmo3base", limit=2, python=python)
    said = r"generation_tasks\.theirs: .*is not an interpreter of Python; name the Python"
    with pytest.raises(SourceError, match=said):
        ask_for_answers(world, {"theirs": asked}, **settings(mirrors))


def answer(dataset: str, body: str) -> str:
    return textwrap.indent(body, "    ") + "\n" if dataset == "bigcodebench" else body


@needs_sandbox
@pytest.mark.parametrize(("dataset", "row"), [("bigcodebench", bigcodebench), ("ds1000", ds1000)])
def test_verdicts_are_those_of_their_scorers(dataset: str, row: Any, tmp_path: Path) -> None:
    rows = rows_of(dataset)
    path = tmp_path / "mirror" / PLACES[dataset]
    path.parent.mkdir(parents=True)
    made = [row(number, name, content) for number, (name, content) in enumerate(rows.items())]
    pq.write_table(pa.Table.from_pylist(made), path)
    names = list(rows)

    def written(_task: str, number: int, _gold: str, _other: str) -> dict[str, str]:
        wrong = {f"wrong {n}": text for n, text in enumerate(rows[names[number]]["wrong"])}
        texts = {"right": rows[names[number]]["right"], **wrong}
        return {kind: answer(dataset, text) for kind, text in texts.items()}

    task = f"{dataset}:olmo3base"
    lines = judged(
        {"*": str(tmp_path / "mirror")}, [task], tmp_path, written, PYTHON, limit=len(rows)
    )
    assert len(lines) == 3 * len(rows)
    for line in lines:
        name, is_right = names[line["number"]], line["kind"] == "right"
        assert line["theirs"] == {HEADLINE: float(is_right)}, (name, line)
        passes = is_right and "here" not in rows[name]
        assert line["ours"].scores == {HEADLINE: float(passes)}, (name, line)
