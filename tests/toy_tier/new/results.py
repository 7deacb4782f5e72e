"""Books of riddles, each riddle solved or not."""

from pydantic import Field

from evaluation.results.columns import Column
from evaluation.results.tier_files import ItemEntry, TierFile

RIDDLES = (
    Column("book", "string"),
    Column("riddle", "string"),
    Column("solved", "bool"),
)


class BookEntry(ItemEntry):
    solved: float = Field(ge=0, le=1)

    @property
    def values(self):
        return {"solved": self.solved}


class ToyFile(TierFile):
    riddles: dict[str, BookEntry] = Field(min_length=1)
