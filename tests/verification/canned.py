"""Completions that somebody wrote down: golds in several formats, near misses, hostile ones.

Made from the rows alone, the same in every Python: `make_references.py` has others judge them.
"""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

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


_FORMATS = yaml.safe_load(Path(__file__).with_name("canned.yaml").read_text(encoding="utf-8"))


def gsm8k(row: Row) -> Named:
    """Answers to a question of GSM8K."""
    number = int(row["answer"].split("#### ")[1].replace(",", ""))
    values = {
        "solution": row["answer"],
        "number": number,
        "thousands": f"{number:,}",
        "one more": number + 1,
        "one less": number - 1,
        "seven more": number + 7,
        "number 300 times": str(number) * 300,
        "Arabic digits": "".join(chr(0x660 + int(digit)) for digit in str(number)),
    }
    return _filled_in("gsm8k", values)


def mathematics(row: Row, other: Row) -> Named:
    """Answers to a question of MATH; `other` is another question, whose answer is wrong."""
    gold = row["answer"]
    values = {
        "solution": row["solution"],
        "gold": gold,
        "wrong": other["answer"],
        "spelled": gold.replace("\\frac", "\\dfrac").replace("\\left", "").replace("\\right", ""),
        "cut off": gold[:-1],
        "300 (": "(" * 300,
        "300 )": ")" * 300,
    }
    return _filled_in("math_500", values)


def _filled_in(task: str, values: dict[str, Any]) -> Named:
    return {
        name: re.sub("<(.+?)>", lambda found: str(values[found[1]]), text)
        for name, text in _FORMATS[task].items()
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
