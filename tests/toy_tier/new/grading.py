"""The share of riddles of each book that is solved."""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluation.files import write_parquet
from evaluation.grading.header import add_up
from evaluation.metrics.layout import Layout
from evaluation.results.kinds import units_of
from evaluation.settings.tiers import TIERS


def riddle_units(ids, solved):
    return units_of(TIERS["toy"], ids, Layout(len(ids)), {"solved": np.asarray(solved, np.float64)})


def grade_riddles(plan, store, entry):
    from evaluation.grading.tiers import TierFiles  # which registers this very function

    books, tables, summaries, units = {}, [], [], {}
    for name, item in entry["items"].items():
        score = store.read(item["score"])
        tables.append(score.table.add_column(0, "book", [[name] * len(score.table)]))
        summaries.append(score.summary)
        riddles = score.table.to_pydict()
        units[name] = riddle_units(riddles["riddle"], riddles["solved"])
        books[name] = {
            "solved": pc.mean(score.table["solved"]).as_py(),
            "group": plan.suite.riddles[name].group,
            **{key: item[key] for key in ("data", "data_checksum", "items")},
        }
    write = partial(write_parquet, table=pa.concat_tables(tables))
    counts = add_up(book["items"] for book in books.values())
    return TierFiles({"riddles": books}, units, write, summaries, counts)
