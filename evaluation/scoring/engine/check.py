"""Compare an engine's log-probabilities with the model's own, for each shape, window and kind of mask.

A class may scale its logits behind the head, carry a state past any mask, or ignore masks; a kernel may
be wrong. All of these would give wrong scores without an error. The check runs what scoring and decoding
run: on two sequences that share a prefix, or on a plain one, beyond the windows of the layers.

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
from evaluation.scoring.engine.tries import Batch, Ints, PackedInputs, collate, key_of

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}  # rounding in float32 causes about 1e-6
NARROW, EXPERTS = 1e-2, 5e-2  # bfloat16 causes about 4e-3, or may choose other experts
SLOPE = 2e-3  # how far from 1 the least-squares slope may be

SHORT = 5  # tokens of the comparison that every job makes: few, with a fork
LONGEST = (
    4608  # most tokens of a sequence that is compared: longer than the windows of common models
)
COMPARED = 256  # token ids whose log-probability is compared at each of the last positions
LAST = 3  # positions at the end of each sequence that are compared: they see all others
REFUSALS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(TypeError, ValueError, RuntimeError),
)
"""Errors of a class that does not take what this project gives it."""

_BEYOND = (
    40  # tokens after the end of a block or a window, so that the last positions are outside it
)

Values = NDArray[np.float64]
Run = Callable[[Batch], tuple[torch.Tensor, torch.Tensor]]


def scoring_fault(model: PreTrainedModel, run: Run, shape: Shape, *, is_causal: bool) -> str | None:
    """Return why a row's log-probabilities in a shape differ from the model's own; None if they do not.

    The row is one plain sequence, or two that share a prefix.
    """
    length = min(max(BLOCK + _BEYOND, beyond_windows(model, shape.length)), shape.length)
    vocabulary = model.get_input_embeddings().weight.shape[0]
    sequences, ids = _sequences(length, vocabulary, is_causal=is_causal), compared(vocabulary)
    # Each input ends at one of the last positions, and each pair asks for one of the compared tokens.
    ends = [one[: len(one) - n] for one in sequences for n in range(LAST)[::-1]]
    inputs = [key for end in ends for key in [key_of(end)] * len(ids)]
    targets = [key_of([token]) for token in ids.tolist()] * len(ends)
    packed = PackedInputs(inputs, targets, lambda shared: shared + 2 * length)
    with torch.inference_mode():  # as in scoring: graphs of layers depend on it
        batch = collate([packed.row(0)], shape.length, count=shape.rows, is_causal=is_causal)

    def compare() -> str | None:
        ours = np.empty(len(targets))
        ours[batch.owner] = run(batch)[0].double().cpu()
        parts = ours.reshape(len(sequences), LAST, len(ids))
        faults = (difference(model, *pair) for pair in zip(sequences, parts, strict=True))
        return next(filter(None, faults), None)

    return fault_of(compare)


def _sequences(length: int, vocabulary: int, *, is_causal: bool) -> list[Ints]:
    """Return sequences that take `length` tokens together: one, or two with a common prefix."""
    # A prime step: no id comes twice before the vocabulary is used up, so every place is distinguishable.
    tokens = (1 + np.arange(length) * 7919) % vocabulary
    if is_causal:
        return [tokens]
    fork = length - 1 - min(8, length // 4)
    shared = max(1, fork - LAST + 1)
    return [tokens[:fork], np.concatenate([tokens[:shared], tokens[fork:]])]


def compared(vocabulary: int) -> Ints:
    """Return at most COMPARED token ids, spread evenly over the vocabulary, up to its last row."""
    return np.linspace(0, vocabulary - 1, min(COMPARED, vocabulary)).astype(np.int64)


def fault_of(compare: Callable[[], str | None]) -> str | None:
    """Return what a comparison returns, or which error the class raised in it."""
    try:
        with gpu_faults():
            return compare()
    except NonFiniteError:
        return None  # scoring names what it came from
    except EvaluationError:
        raise
    except REFUSALS as error:
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
        elif type(value) is int and re.search("window(?!_layers)|chunk", str(key)):
            yield value


def difference(model: PreTrainedModel, tokens: Ints, found: Values) -> str | None:
    """Return by how much log-probabilities (last, tokens) differ from the model's own, if not by rounding.

    In narrow dtypes, twice what two of the class's own attention functions differ by is rounding, too.
    """
    own = _reference(model, tokens, len(found))
    is_mixed = any(type(module).__name__.endswith("Experts") for module in model.modules())
    allowed, steepest = TOLERANCE.get(model.dtype, EXPERTS if is_mixed else NARROW), SLOPE
    error, slope = _compared(found, own)
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


def _reference(model: PreTrainedModel, tokens: Ints, last: int) -> Values:
    """Return log-probabilities (last, tokens) by the model's own forward pass over a sequence."""
    vocabulary = model.get_input_embeddings().weight.shape[0]
    ids = torch.from_numpy(tokens[None]).to(model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=last).logits[0, -last:]
    values: Values = logits.double().log_softmax(-1)[:, compared(vocabulary)].cpu().numpy()
    return values
