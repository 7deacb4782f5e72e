"""The share of riddles of each book that is solved."""

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from evaluation.files import write_parquet
from evaluation.grading.header import add_up


def grade_riddles(plan, store, entry):
    from evaluation.grading.tiers import TierFiles  # which registers this very function

    books, tables, summaries = {}, [], []
    for name, item in entry["items"].items():
        score = store.read(item["score"])
        tables.append(score.table.add_column(0, "book", [[name] * len(score.table)]))
        summaries.append(score.summary)
        books[name] = {
            "solved": pc.mean(score.table["solved"]).as_py(),
            "group": plan.suite.riddles[name].group,
            **{key: item[key] for key in ("data", "data_checksum", "items")},
        }
    write = partial(write_parquet, table=pa.concat_tables(tables))
    counts = add_up(book["items"] for book in books.values())
    return TierFiles({"riddles": books}, write, summaries, counts)
