"""docs/results.md, read as what it says about each file, and compared with the files of a results folder."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from tests.conftest import ROOT

PAGE = ROOT / "docs/results.md"
HEADER = "Header of every tier file"
UNITS = "Tables of one checkpoint"
"""The section whose text names the columns that all tables of units have."""
VARIANTS = ("acc_", "pass_rate_")
"""Beginnings of columns that the page names once, as `acc_<name>`."""

FOLDERS = ("<step>", "<stage>", "<results>")


def sections() -> dict[str, str]:
    """The sections of the page by their headings."""
    _, *parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)
    return {title.strip("`"): text for title, _, text in (part.partition("\n") for part in parts)}


def described() -> dict[str, str]:
    """The keys of each file in the page's words, by its place; none of files that only people read.

    The place of a folder ends with a slash.
    """
    found = {}
    for title, text in sections().items():
        if title.startswith(FOLDERS):
            found[title] = text
        of_table = next((folder for folder in FOLDERS if f"In the folder `{folder}`" in text), "")
        for row in re.findall(r"^\| (`.*) \|$", text, flags=re.M) if "| file |" in text else ():
            cell, *_, keys = row.split(" | ")
            for name in re.findall(r"`([^`]+)`", cell):
                place = name if name.startswith((*FOLDERS, ".")) else f"{of_table}/{name}"
                found[place] = keys if of_table else ""
    return found


def words(text: str) -> set[str]:
    """The keys that a text names: `slices.<name>.bytes` has two."""
    return {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}


def place_of(path: str) -> str:
    """The page's name of the place of a file, by its path in a results folder."""
    path = re.sub(r"^[^/]+/(by_checkpoint/step_\d+|bridge)/", "<step>/", path)
    path = re.sub(r"^(?!<|\.|scores/)[^/]+/", "<stage>/", path)
    path = path if path.startswith("<") else f"<results>/{path}"
    return re.sub(r"(?<=generation/)[^/]+|(?<=figures/)[^/]+(?=\.svg$)", "<name>", path)


def keys_in(path: Path) -> set[str]:
    """The columns of a table, or the keys of each object in JSON."""
    if path.suffix == ".parquet":
        return set(pq.read_schema(path).names)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        return set(next(csv.reader(text.splitlines())))
    lines = [text] if path.suffix == ".json" else text.splitlines()
    return {key for line in lines for key in json.loads(line)}


def undescribed(results: Path) -> Iterator[str]:
    """Files of a results folder, and keys and columns of these, that the page lacks."""
    page, header = described(), words(sections()[HEADER])
    units = words(sections()[UNITS].partition("|")[0])
    folders = [place for place in page if place.endswith("/")]
    for path in sorted(path for path in results.rglob("*") if path.is_file()):
        relative = str(path.relative_to(results))
        place = place_of(relative)
        if any(place.startswith(one) or f"/{one}" in place for one in folders):
            continue
        if place not in page:
            yield relative
        elif page[place]:
            known = words(page[place]) | (header if "/tier" in place else set())
            known |= units if place.endswith("_units.parquet") else set()
            lacking = {key for key in keys_in(path) - known if not key.startswith(VARIANTS)}
            yield from (f"{relative}: {key}" for key in sorted(lacking))
