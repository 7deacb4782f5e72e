"""Contexts and prompts as DS-1000 writes them, from the few lines in which its rows differ."""

import textwrap
from typing import Any

Row = dict[str, Any]

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


def context_of(row: Row) -> str:
    if "context" in row:
        return str(row["context"])
    parts = {name: textwrap.indent(row[name], " " * 8) for name in ("answer", "inputs")}
    compares = COMPARES[row.get("compares", "numbers")]
    own = {"imports": row["imports"], "given": row["given"], "compares": compares, **parts}
    return CONTEXT.format(**own) + ("\n\n" + row["string"] if "string" in row else "")


def prompt_of(name: str, row: Row) -> str:
    if "prompt" in row:
        return str(row["prompt"])
    return (
        f"Problem:\n{name}\n\nA:\n<code>\n{row['imports']}\n</code>\n"
        "result = ... # put solution in this variable\nBEGIN SOLUTION\n<code>\n"
    )
