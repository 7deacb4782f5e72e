"""A block of packed text as a row: one sequence, or the documents in it one after the other."""

import numpy as np
from numpy.typing import NDArray

from evaluation.scoring.engine.packed_rows import Row


def block_row(tokens: NDArray[np.integer], begins: NDArray[np.bool_], block: int) -> Row:
    """The row of a block, (T,), in which a sequence begins wherever `begins` (T,) is true."""
    index = np.arange(len(tokens))
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(tokens))
    sequence = np.cumsum(begins) - 1
    predicted = np.flatnonzero(~begins)
    return Row(
        tokens=tokens.astype(np.int64),
        depth=index - starts[sequence],
        end=ends[sequence],
        pair_query=predicted - 1,
        pair_token=tokens[predicted].astype(np.int64),
        owners=np.array([block]),
        counts=np.array([len(predicted)]),
    )
