"""Books of riddles, each riddle solved or not."""

import numpy as np
from pydantic import Field

from evaluation.metrics.layout import Layout
from evaluation.metrics.ratios import Ratio
from evaluation.results.columns import Column, read_table, rows_of
from evaluation.results.kinds import Item, ItemReader, Items, Units
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


def _riddles(tier, file, folder):
    path = folder / tier.items_file
    table = read_table(path, RIDDLES, "score again")
    items = {}
    for name, entry in file.riddles.items():
        rows = rows_of(table, "book", name, path, "score again")
        credit = rows["solved"].to_numpy(zero_copy_only=False).astype(np.float64)
        ids = tuple(rows["riddle"].to_pylist())
        units = Units(ids=ids, layout=Layout(len(ids)), measured={"solved": Ratio(credit)})
        items[name] = Item(
            group=entry.group,
            values={"solved": entry.solved},
            same={"data": entry.data_checksum},
            entry=entry,
            units=units,
        )
    return Items(items=items)


TOY = ItemReader(ToyFile, RIDDLES, _riddles)
