"""Stored sums over blocks of text, from which Tier2's metrics are made; needs neither model nor torch.

Bits per byte makes models with different tokenizers comparable: the information of all scored
tokens over the UTF-8 bytes of all scored text, whatever it was cut into. In detail:

1. It is a ratio of sums, not a mean of ratios: blocks of long words weigh by their bytes.
2. The first token of a block is context: neither its nats nor its bytes count.
3. A separator between documents is predicted, so its nats count; it has no bytes.
4. With document attention a document's first token is not scored: its bytes do not count.
"""

import numpy as np
import pyarrow as pa

from evaluation.errors import NonFiniteError, ScoringError
from evaluation.metrics.variance import Floats
from evaluation.settings.tiers import TIERS


def columns_of_blocks(table: pa.Table) -> dict[str, Floats]:
    """Return the columns that metrics of blocks need, (blocks,) each, as far as they were stored."""
    return {
        name: table[name].to_numpy().astype(np.float64)
        for name in TIERS["tier2"].summed
        if name in table.column_names and not table[name].null_count
    }


def check_blocks(table: pa.Table) -> None:
    """Check that a slice has a loss.

    Raises:
        NonFiniteError: A loss is NaN or infinite; it names the block.
        ScoringError: Nothing is scored.
    """
    nats = table["nats"].to_numpy()
    broken = np.flatnonzero(~np.isfinite(nats))
    if len(broken):
        raise NonFiniteError(
            f"block {table['block'][broken[0]]}: its loss is NaN or infinite; check the checkpoint's weights"
        )
    scored = int(table["tokens"].to_numpy().sum())
    if not scored or not table["bytes"].to_numpy().sum():
        raise ScoringError(
            "no token of the slice is scored: its blocks are too short or empty; prefill it with a "
            "larger `sequence_length`"
        )
