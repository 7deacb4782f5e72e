"""Answers that keep sympy busy for ever, or eat the memory: none holds the others up."""

from evaluation.settings.verifiers import MathVerify, Minerva
from evaluation.verification.pool import Job, verify_all

FORMULAS = [
    "9^{9^{9^{9}}}",
    "10^{10^{10}}",
    "2^{1000000000}",
    "\\sum_{i=1}^{1000000000} i^{i}",
    "\\sum_{i=1}^{10^{12}} \\frac{1}{i}",
    "\\prod_{k=1}^{10^{9}} k",
    "1000000000!",
    "((((10!)!)!)!)",
    "\\binom{10^{9}}{5 \\cdot 10^{8}}",
    "9" * 100_000,
    "1+" * 20_000 + "1",
    "(" * 5_000 + "1" + ")" * 5_000,
    "\\frac{1}{" * 2_000 + "2" + "}" * 2_000,
    "\\sqrt{" * 1_500 + "2" + "}" * 1_500,
    "\\boxed{" * 3_000 + "1" + "}" * 3_000,
    "\\int_0^{1} \\sin(x^{x^{x^{x}}}) e^{x^{7}} dx",
    "\\lim_{x\\to 0} \\frac{\\sin(\\tan(x)) - \\tan(\\sin(x))}{x^{x^{7}}}",
    "x^{100000} - 1 = (x-1)(x+1)^{99999}",
    "(x+y+z+w)^{400}",
    "\\begin{pmatrix}" + " & ".join(f"x_{{{i}}}^{{{i}}}" for i in range(2000)) + "\\end{pmatrix}",
    "\\{1,2,\\ldots,10^{9}\\}",
    "\\sin(10^{10^{8}})",
    "\\log_{2}(3^{10^{9}})",
    "10^{10^{6}} \\mod 7",
    "x=" * 20_000 + "1",
    "{" * 100_000,
    "$1$ " * 50_000,
    "0." + "3" * 50_000 + "\\%",
]
RIGHT = "\\boxed{5} Final Answer: The final answer is $5$. I hope it is correct."


def test_none_blocks_the_others() -> None:
    hostile: list[Job] = [
        (MathVerify(kind="math_verify"), {"gold": "5"}, f"\\boxed{{{formula}}}")
        for formula in FORMULAS
    ]
    hostile += [
        (Minerva(kind="minerva"), {"gold": "5"}, f"Final Answer: The final answer is ${formula}$. ")
        for formula in FORMULAS[:3]
    ]
    right: list[Job] = [(settings, gold, RIGHT) for settings, gold, _ in hostile] * 3
    found = dict(verify_all([*hostile, *right], workers=2, seconds=1, memory_mb=512))
    assert len(FORMULAS) >= 27
    for number, (_, _, completion) in enumerate(hostile):
        assert found[number].credit in (None, 0.0), completion[:60]
    for number in range(len(right)):
        assert found[len(hostile) + number].credit == 1.0
