"""Completions that somebody wrote down: golds in several formats, near misses, hostile ones.

Made from the rows alone, the same in every Python: `make_references.py` has others judge them.
"""

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

Row = dict[str, Any]
Named = dict[str, str]

_FILLER = (
    "The harbour was quiet in the morning, and the boats lay still. Mr. Smith, who had 3.5 hours to "
    "spare, walked along the water! Did he see the gulls? He did... They were loud.\n\n"
    'Later that day the wind rose and NOBODY went out. A fisherman said: "Wait for Tuesday." '
    "So they waited, e.g. in the inn, and told each other long stories about storms.\n\n"
)
_GERMAN = (
    "Der Hafen war am Morgen ruhig und die Boote lagen still im Wasser. Ein alter Fischer erzählte "
    "den Kindern eine lange Geschichte über den Wind und das Meer.\n"
)


def gsm8k(row: Row) -> Named:
    """Answers to a question of GSM8K."""
    solution = row["answer"]
    gold = solution.split("#### ")[1]
    number = int(gold.replace(",", ""))
    return {
        "solution": solution,
        "hashes": f"So it is {number}.\n#### {number}",
        "thousands": f"So that makes\n#### {number:,}",
        "dollars": f"She pays ${number:,}.\n#### ${number:,}",
        "full stop": f"#### {number}.",
        "decimals": f"#### {number}.00",
        "tight": f"####{number}",
        "sentence": f"The answer is {number}.",
        "sentence with unit": f"The answer is ${number:,} dollars",
        "bold": f"There are **{number}** of them.",
        "boxed": f"Therefore $\\boxed{{{number}}}$.",
        "two boxes": f"\\boxed{{{number}}} or rather \\boxed{{{number + 1}}}",
        "equation": f"x = {number - 1} + 1 = {number}",
        "one more": f"#### {number + 1}",
        "negative": f"#### -{number}",
        "ten times": f"The result: {number}0",
        "right, then wrong": f"#### {number}\n\nQuestion: What is 2 + 2?\nAnswer: 4\n#### 4",
        "wrong, then right": f"#### {number + 7}\nNo: #### {number}",
        "in words": "The answer is eighteen.",
        "no number": "I do not know.",
        "empty": "",
        "only hashes": "####",
        "hashes and comma": "#### ,",
        "endless digits": "#### " + str(number) * 300,
        "NUL": f"#### {number}\x00",
        "other digits": "#### " + "".join(chr(0x660 + int(digit)) for digit in str(number)),
        "ratio": f"#### {number}/1",
        "percent": f"It is {number}%",
    }


def mathematics(row: Row, other: Row) -> Named:
    """Answers to a question of MATH; `other` is another question, whose answer is wrong."""
    gold, wrong = row["answer"], other["answer"]
    final = "Final Answer: The final answer is ${}$. I hope it is correct."
    shorter = gold.replace("\\frac", "\\dfrac").replace("\\left", "").replace("\\right", "")
    return {
        "solution": row["solution"],
        "final": final.format(gold),
        "boxed and final": f"So it is $\\boxed{{{gold}}}$.\n" + final.format(gold),
        "final cut off": f"Final Answer: The final answer is ${gold}$. ",
        "final without dollars": f"Final Answer: The final answer is {gold}. I hope it is correct.",
        "final with equation": final.format(f"x = {gold}"),
        "final with units": final.format(f"{gold} \\text{{ cm}}"),
        "boxed": f"Thus the answer is $\\boxed{{{gold}}}$.",
        "spaced box": f"\\[\\boxed{{ {gold} }}\\]",
        "dollars": f"The answer is ${gold}$.",
        "bare": gold,
        "other spelling": f"We get \\boxed{{{shorter}}}. {final.format(shorter)}",
        "one more": f"\\boxed{{{gold} + 1}} {final.format(gold + ' + 1')}",
        "negative": f"\\boxed{{-({gold})}} {final.format(f'-({gold})')}",
        "doubled": f"\\boxed{{\\frac{{2({gold})}}{{2}}}} {final.format(gold + '+ 0')}",
        "another's": f"\\boxed{{{wrong}}} {final.format(wrong)}",
        "two boxes": f"\\boxed{{{gold}}}, or \\boxed{{{wrong}}}",
        "two finals": final.format(gold) + "\n\nProblem: next\n" + final.format(wrong),
        "cut off": f"The answer is $\\boxed{{{gold}"[:-1],
        "no answer": "We cannot tell.",
        "empty": "",
        "brackets": "(" * 300 + gold + ")" * 300,
        "NUL": f"\\boxed{{{gold}\x00}}",
        "nested": f"\\boxed{{\\boxed{{{gold}}}}}",
    }


def instructions(row: Row) -> Named:
    """Answers to a prompt of IFEval or IFBench; those that oblige put in what is asked for."""
    obliging = _obliging(row)
    return {
        "empty": "",
        "blank": " \n ",
        "short": "Yes.",
        "filler": _FILLER * 3,
        "long": _FILLER * 12,
        "lower case": (_FILLER * 5).lower(),
        "capitals": (_FILLER * 2).upper(),
        "german": _GERMAN * 4,
        "echo": row["prompt"] + "\n\n" + _FILLER,
        "obliging": obliging,
        "obliging, introduced": "Sure, here you are:\n" + obliging,
        "obliging, with a farewell": obliging + "\nI hope that helps, let me know!",
        "obliging, in bold": "\n".join(f"**{line}**" for line in obliging.split("\n")),
        "obliging, without commas": obliging.replace(",", ""),
        "obliging, lower case": obliging.lower(),
        "obliging, quoted": f'"{obliging}"',
        "list": "\n".join(f"* {part.strip()}" for part in re.split(r"[.!?]", _FILLER) if part),
        "json": '```json\n{"answer": "Wait for Tuesday", "parts": [1, 2, 3]}\n```',
        "hostile": "\x00" + "[" * 400 + "*" * 400 + "<<" * 50 + "\n" * 200 + "a." * 300,
        "shuffled": _shuffled(row),
        "stairs": "\n".join(" " * depth + f"step number {depth}" for depth in range(12)),
        "emoji": "It is done 🎉. We are glad 🙂. Good night 🌙.",
        "numbers": "There were 3 cats; 14 dogs, 159 birds - 26 fish: (5358) 979. Ann, Tom & Zoe?!",
    }


def _obliging(row: Row) -> str:
    """Tries to follow: whatever text is among the arguments is put in, as often as a number says."""
    lines = ["<<A Quiet Harbour>>", "", _FILLER.strip()]
    ends = []
    for name, given in zip(row["instruction_id_list"], row["kwargs"], strict=True):
        given = {key: value for key, value in given.items() if value is not None}
        count = int(next((v for v in given.values() if isinstance(v, int | float)), 1))
        lines.append(f"*{name.split(':')[1].replace('_', ' ')}* and *more of it*")
        for key, value in given.items():
            if key == "end_phrase":
                ends.append(value)
            elif key == "section_spliter":
                lines += [f"{value} {number}\nIt goes on." for number in range(1, count + 1)]
            elif isinstance(value, list):
                lines += [" ".join(map(str, value))] * 2
            elif isinstance(value, str) and key != "relation" and len(value) < 400:
                lines.append(" ".join([value] * min(count, 40)))
        if "bullet" in name:
            lines += [f"* point {number}" for number in range(count)]
        if "placeholder" in name:
            lines += [f"[placeholder {number}]" for number in range(count)]
        if "two_responses" in name:
            lines += ["******", "A second one."]
        if "paragraphs" in name:
            lines += ["***", "A paragraph."] * (count - 1)
    return "\n".join([*lines, "P.S. Bring a coat.", "P.P.S. And boots.", *ends])


def _shuffled(row: Row) -> str:
    words = f"{_FILLER} {row['prompt']}".split()
    random.Random(row["prompt"]).shuffle(words)
    return " ".join(words)


def cases(
    rows: list[Row], make: Callable[..., Named], *, pairs: bool = False
) -> Iterator[tuple[int, Row, str, str]]:
    """(number of the row, row, name, completion) of all rows."""
    for number, row in enumerate(rows):
        made = make(row, rows[number - 1]) if pairs else make(row)
        for name, completion in made.items():
            yield number, row, name, completion
