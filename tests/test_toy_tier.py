"""A tier that is added by a short list of edits is found in every output.

EDITS are made to a copy of the package; NEW are the files with what is really new. Each room's edits
come with what proves that the room knows the tier, in `toy_tier.py`, which runs on the copy.
"""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import ROOT

MOST = 15


class Edit(NamedTuple):
    """Text that is put before a place in a file of the package, which is there once."""

    file: str
    before: str
    text: str


EDITS = [
    Edit(
        "settings/tiers.py",
        ")\n\nTIERS: Mapping[str, Tier]",
        """    Tier(
        name="toy",
        title="Riddles",
        kind="credit",
        section="riddles",
        item="book",
        unit="riddles",
        cache=Cache(name="riddle_book", folder="riddles"),
        summary_file="toy_riddles.json",
        items_file="toy_riddles.parquet",
        metrics=(_rate("solved"),),
        headline="solved",
        shown="solved",
        protocol="toy-1",
    ),
""",
    ),
    Edit(
        "settings/suites.py",
        "\n\ndef load_suite(",
        '    riddles: dict[str, Slice] = Field({}, description="Toy: books by name.")\n',
    ),
    Edit(
        "prefill/tiers.py",
        "from evaluation.settings.plan import",
        "from evaluation.prefill.toy import RIDDLES\n",
    ),
    Edit(
        "prefill/tiers.py",
        '    },\n    "prefill.tiers.PREFILLS"',
        '        "toy": RIDDLES,\n',
    ),
    Edit(
        "results/items.py",
        "from evaluation.settings.tiers import",
        "from evaluation.results.toy import RIDDLES, ToyFile, riddles\n",
    ),
    Edit(
        "results/items.py",
        "}\n\n\ndef reader_of",
        '    "toy": ItemReader(ToyFile, RIDDLES, riddles),\n',
    ),
]

NEW = {
    "prefill/toy.py": '''"""Books of riddles as they stand in the suite."""

from evaluation.files import fingerprint


class Riddles:
    def define(self, plan, name, tokenizer):
        return fingerprint(plan.suite.riddles[name].definition())


RIDDLES = Riddles()
''',
    "results/toy.py": '''"""Books of riddles, each riddle solved or not."""

import numpy as np
from pydantic import Field

from evaluation.results.columns import Column, read_table, rows_of
from evaluation.results.kinds import CreditItem, Credits, Items
from evaluation.results.tier_files import ItemEntry, TierFile

RIDDLES = (
    Column("book", "string", "Name of the book."),
    Column("riddle", "string", "Id of the riddle."),
    Column("solved", "bool", "Whether it was solved."),
)


class BookEntry(ItemEntry):
    solved: float = Field(ge=0, le=1, description="Share of its riddles.")


class ToyFile(TierFile):
    riddles: dict[str, BookEntry] = Field(min_length=1, description="Each book by name.")


def riddles(tier, file, folder):
    path = folder / tier.items_file
    table = read_table(path, RIDDLES, "score again")
    items = {}
    for name, entry in file.riddles.items():
        rows = rows_of(table, "book", name, path, "score again")
        credit = rows["solved"].to_numpy(zero_copy_only=False).astype(np.float64)
        units = Credits(ids=tuple(rows["riddle"].to_pylist()), credit=credit)
        items[name] = CreditItem(
            group=entry.group,
            values={"solved": entry.solved},
            same={"data": entry.data_checksum},
            entry=entry,
            credits={"solved": units},
        )
    return Items(items=items)
''',
}


def test_edits_are_few() -> None:
    assert len(EDITS) <= MOST
    assert max(Counter(edit.file for edit in EDITS).values()) <= 3


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has one tier more."""
    root = tmp_path_factory.mktemp("toy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "evaluation", root / "evaluation", ignore=ignored)
    for file in ("pyproject.toml", "requirements.lock"):  # which doctor reads
        shutil.copy(ROOT / file, root)
    for file, before, text in EDITS:
        path = root / "evaluation" / file
        whole = path.read_text(encoding="utf-8")
        assert whole.count(before) == 1, (file, before)
        path.write_text(whole.replace(before, text + before), encoding="utf-8")
    for file, text in NEW.items():
        (root / "evaluation" / file).write_text(text, encoding="utf-8")
    return root


def run(package: Path, room: str, folder: Path) -> None:
    """Runs a room's proof on the copy; what fails is in its output."""
    path = os.pathsep.join([str(package), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.toy_tier", room, str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("room", ["bridge", "reporting", "doctor", "missing_reader"])
def test_a_room_knows_the_tier(package: Path, tmp_path: Path, room: str) -> None:
    run(package, room, tmp_path)
