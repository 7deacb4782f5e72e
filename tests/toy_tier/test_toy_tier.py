"""A tier that is added by a short list of edits is found in every output.

EDITS are made to a copy of the package, as `evaluation/settings/tiers.py` says; what is really new
lies in `new/`, a file for each room. `rooms.py`, which runs on the copy, has what proves that a room
knows the tier; the last one is a run of the workflow, from prefill to the report.
"""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import ROOT
from tests.histories.warm import run_python, well

MOST = 15
NEW = Path(__file__).parent / "new"


class Edit(NamedTuple):
    """Text that is put before a place in a file of the package, which is there once."""

    file: str
    before: str
    text: str


def registered(file: str, beside: str, registry: str, name: str) -> list[Edit]:
    """What a registry takes: an import, put before the line `beside`, and an entry."""
    return [
        Edit(file, beside, f"from evaluation.{file.partition('/')[0]}.toy import {name}\n"),
        Edit(file, f'    }},\n    "{registry}"', f'        "toy": {name},\n'),
    ]


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
        "\n\nclass Suite(Settings):",
        '    riddles: dict[str, dict[str, Any]] = Field({}, description="Toy: keys of books.")\n',
    ),
    Edit(
        "settings/suites.py",
        "\n\nMOST_EXTENDED = ",
        '    riddles: dict[str, Slice] = Field({}, description="Toy: books by name.")\n',
    ),
    Edit(
        "prefill/tiers.py",
        "from evaluation.prefill.definitions",
        "from evaluation.prefill import toy\n",
    ),
    Edit(
        "prefill/tiers.py",
        '    },\n    "prefill.tiers.PREFILLS"',
        """        "toy": Prefill(
            define=toy.define, origins=toy.origins, make=toy.make, read=toy.read
        ),
""",
    ),
    *registered(
        "scoring/tiers.py",
        "from evaluation.settings.tiers",
        "scoring.tiers.SCORERS",
        "score_riddles",
    ),
    *registered(
        "grading/tiers.py",
        "from evaluation.settings.plan",
        "grading.tiers.SUMMARIZERS",
        "grade_riddles",
    ),
    Edit(
        "results/items.py",
        "from evaluation.settings.tiers",
        "from evaluation.results.toy import TOY\n",
    ),
    Edit("results/items.py", "}\n\n\ndef reader_of", '    "toy": TOY,\n'),
]


def test_edits_are_few() -> None:
    assert len(EDITS) <= MOST


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has one tier more."""
    root = tmp_path_factory.mktemp("toy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "evaluation", root / "evaluation", ignore=ignored)
    shutil.copytree(ROOT / "workflow", root / "workflow", ignore=ignored)
    for file in ("pyproject.toml", "requirements.lock"):  # which doctor reads
        shutil.copy(ROOT / file, root)
    for file, before, text in EDITS:
        path = root / "evaluation" / file
        whole = path.read_text(encoding="utf-8")
        assert whole.count(before) == 1, (file, before)
        path.write_text(whole.replace(before, text + before), encoding="utf-8")
    for path in NEW.glob("*.py"):
        shutil.copy(path, root / "evaluation" / path.stem / "toy.py")
    return root


def run(package: Path, room: str, folder: Path) -> None:
    """Runs a room's proof on the copy; what fails is in its output."""
    path = os.pathsep.join([str(package), str(ROOT)])
    words = ["-W", "error", "-m", "tests.toy_tier.rooms", room, str(folder)]
    well(run_python(words, folder, cold=True, PYTHONPATH=path, PYTHONSAFEPATH="1"))


@pytest.mark.parametrize("room", ["bridge", "reporting", "doctor", "missing_reader", "workflow"])
def test_a_room_knows_the_tier(package: Path, tmp_path: Path, room: str) -> None:
    run(package, room, tmp_path)
