"""Compare an engine's log-probabilities with the model's own, for each shape, window and kind of mask.

A class may scale its logits behind the head, carry a state past any mask, or ignore masks; a kernel may
be wrong. All of these would give wrong scores without an error. The check runs what scoring runs, on a
row with two sequences that share a prefix, or on one plain sequence, beyond the windows of the layers.

The reference is transformers' own pass over each sequence alone. The relative L2 norm of the difference
counts, and the slope of our values on the model's: a scale of 1.01 shows there in bfloat16, too.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from evaluation.errors import EvaluationError, NonFiniteError, with_class
from evaluation.scoring.engine.gpu import Shape, attention_by, gpu_faults
from evaluation.scoring.engine.masks import BLOCK
from evaluation.scoring.engine.tries import Batch, PackedRow, chain, collate

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}
"""Tolerance of each dtype: rounding in float32 causes about 1e-6."""
NARROW = 1e-2
"""Tolerance of narrower dtypes: bfloat16 causes about 4e-3."""
EXPERTS = 5e-2
"""The same if rounding may route a token to other experts."""
SLOPE = 2e-3
"""How far from 1 the least-squares slope may be."""

SHORT = 5
"""Tokens of the comparison that every job makes: few, with a fork."""
LONGEST = 4608
"""Most tokens of a sequence that is compared: longer than the windows of common models."""
COMPARED = 256
"""Number of token ids whose log-probability is compared at each of the last positions."""
LAST = 3
"""Number of positions at the end of each sequence that are compared: they see all others."""
REFUSALS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of a class that does not take what this project gives it."""

_SIZE = re.compile("window(?!_layers)|chunk")
_BEYOND = (
    40  # tokens after the end of a block or a window, so that the last positions are outside it
)

Values = NDArray[np.float64]


def scoring_fault(
    model: PreTrainedModel,
    run: Callable[[Batch], tuple[torch.Tensor, torch.Tensor]],
    shape: Shape,
    *,
    is_causal: bool,
) -> str | None:
    """Return why a row's log-probabilities in a shape differ from the model's own; None if they do not.

    Args:
        run: Returns log-probabilities of the pairs of a batch, and whether they are greedy.
        is_causal: Whether the row is one plain sequence; otherwise two share it.
    """
    length = min(max(BLOCK + _BEYOND, beyond_windows(model, shape.length)), shape.length)
    vocabulary = model.get_input_embeddings().weight.shape[0]
    row, sequences = _sample(length, vocabulary, is_causal=is_causal)
    batch = collate([row], shape.length, count=shape.rows, is_causal=is_causal)

    def compare() -> str | None:
        ours = np.empty(len(row.target))
        ours[np.argsort(row.query, kind="stable")] = run(batch)[0].double().cpu()
        width = len(compared(vocabulary))
        parts = [ours[row.owner == number].reshape(-1, width) for number in range(len(sequences))]
        pairs = zip(sequences, parts, strict=True)
        faults = (difference(model, tokens, values) for tokens, values in pairs)
        return next(filter(None, faults), None)

    return fault_of(compare)


def fault_of(compare: Callable[[], str | None]) -> str | None:
    """Return what a comparison returns, or which error the class raised in it."""
    try:
        with gpu_faults():
            return compare()
    except NonFiniteError:
        return None  # scoring names what it came from
    except EvaluationError:
        raise
    except (*REFUSALS, RuntimeError) as error:
        return f"it does not take a mask and positions for each token ({with_class(error)})"


def beyond_windows(model: PreTrainedModel, length: int) -> int:
    """Return a length beyond every window that is shorter than rows of `length`; 0 if there is none.

    Every key of the configuration that is named like a window counts, even if the class ignores it.
    """
    most = min(LONGEST, max(length, getattr(model.config, "max_position_embeddings", 0)))
    sizes = (size + _BEYOND for size in _window_sizes(model.config.to_dict()) if 0 < size < length)
    return min(max(sizes, default=0), most)


def _window_sizes(table: dict[str, Any]) -> Iterator[int]:
    """Yield the values of all keys that are named like a window or chunk, in nested tables, too."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _window_sizes(value)
        elif type(value) is int and _SIZE.search(key):
            yield value


def _sample(
    length: int, vocabulary: int, *, is_causal: bool
) -> tuple[PackedRow, list[NDArray[np.int64]]]:
    """Return a row and its sequences; pairs ask for all compared tokens at the last positions of each."""
    index = np.arange(length)
    # A prime step: no id comes twice before the vocabulary is used up, so every place is distinguishable.
    tokens = (1 + index * 7919) % vocabulary
    ids = compared(vocabulary)
    fork = length if is_causal else length - 1 - min(8, length // 4)
    shared = fork - LAST + 1 if fork > LAST else 1
    places = [index[:fork], np.append(index[:shared], index[fork:])][: 1 if is_causal else 2]
    depth, end = index.copy(), np.full(length, length)
    if not is_causal:
        depth[fork:] = shared + np.arange(length - fork)
        end[shared:fork] = fork
    pairs = [
        chain(tokens, path[-LAST:].repeat(len(ids)), np.tile(ids, len(path[-LAST:])), number)
        for number, path in enumerate(places)
    ]
    query, target, owner = (
        np.concatenate(part) for part in zip(*(row[3:] for row in pairs), strict=True)
    )
    return PackedRow(tokens, depth, end, query, target, owner), [tokens[path] for path in places]


def compared(vocabulary: int) -> NDArray[np.int64]:
    """Return at most COMPARED token ids, spread evenly over the vocabulary, up to its last row."""
    return np.linspace(0, vocabulary - 1, min(COMPARED, vocabulary)).astype(np.int64)


def difference(model: PreTrainedModel, tokens: NDArray[np.int64], found: Values) -> str | None:
    """Return by how much log-probabilities differ from the model's own; None if by rounding alone.

    In narrow dtypes, twice what two of the class's own attention functions differ by is rounding, too.

    Args:
        tokens: The sequence, (T,).
        found: Log-probabilities of `compared` tokens after each of the last tokens, (last, tokens).
    """
    own = _reference(model, tokens, len(found))
    is_mixed = any(type(module).__name__.endswith("Experts") for module in model.modules())
    allowed = TOLERANCE.get(model.dtype, EXPERTS if is_mixed else NARROW)
    error, slope = _compared(found, own)
    steepest = SLOPE
    if (error > allowed or abs(slope - 1) > steepest) and model.dtype not in TOLERANCE:
        with attention_by(model, "eager"):
            noise, tilt = _compared(_reference(model, tokens, len(found)), own)
        allowed, steepest = max(allowed, 2 * noise), max(steepest, 2 * abs(tilt - 1))
    if error > allowed or abs(slope - 1) > steepest:  # False for NaN, which scoring reports
        return (
            "its own log-probabilities differ from those of its body and head with a mask by "
            f"{error:.1e} (relative L2, at most {allowed:.0e} in {model.dtype}; slope {slope:.4f})"
        )
    return None


def _compared(found: Values, own: Values) -> tuple[float, float]:
    """Return the relative L2 difference, and the slope of values less the mean of their position."""
    error = float(np.linalg.norm(found - own) / np.linalg.norm(own))
    ours, theirs = (values - values.mean(axis=1, keepdims=True) for values in (found, own))
    return error, float((ours * theirs).sum() / max((theirs * theirs).sum(), 1e-300))


def _reference(model: PreTrainedModel, tokens: NDArray[np.int64], last: int) -> Values:
    """Return log-probabilities (last, tokens) by the model's own forward pass over a sequence."""
    vocabulary = model.get_input_embeddings().weight.shape[0]
    ids = torch.from_numpy(tokens[None]).to(model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=last).logits[0, -last:]
    values: Values = logits.double().log_softmax(-1)[:, compared(vocabulary)].cpu().numpy()
    return values
