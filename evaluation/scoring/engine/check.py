"""Compare an engine's log-probabilities with the model's own, for each length of rows, and beyond windows.

A class may scale its logits behind the head, carry a state past any mask, or ignore masks; a kernel may
be wrong. All of these would give wrong scores without an error. The check runs what scoring and decoding
run, on two sequences that share a prefix.

The reference is transformers' own pass over each sequence alone. The relative L2 norm of the difference
counts, and the slope of our values on the model's, beside its own noise: a scale of 1.01 shows there in
bfloat16, too.
"""

import subprocess
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import scipy.stats
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from evaluation.errors import EvaluationError, NonFiniteError, ScoringError, with_class
from evaluation.scoring.engine.forward import BLOCK, Engine
from evaluation.scoring.engine.gpu import UNCOMPILED, gpu_faults
from evaluation.scoring.engine.head import declared
from evaluation.scoring.engine.packing import Ints, PackedRows, key_of

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}  # rounding in float32 causes about 1e-6
NARROW, EXPERTS = 1e-2, 5e-2  # bfloat16 causes about 4e-3, or may choose other experts
SLOPE = 2e-3  # how far from 1 the mean of least-squares slopes may be, if not by noise (p < 2e-4)

SHORT = 5  # tokens of the comparison that every job in float32 makes: few, with a fork
COMPARED = 64  # token ids whose log-probability is compared at each of the last positions
LAST = 32  # positions at the end of each sequence that are compared
REFUSALS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError),
    *(RuntimeError, subprocess.SubprocessError),
)
"""Errors of a class that does not take what this project gives it, and of compilers."""

INSTEAD = "score it by a `command` of your own"

_BEYOND = 60
"""Tokens after the end of a block or a window, so that the last positions are outside it."""

Values = NDArray[np.float64]


def ensure_scorable(engine: Engine, rows: PackedRows) -> None:
    """Compare each kind of pass that the rows need once; raise ScoringError where values differ."""
    lengths = {engine.padded(length) for length in rows.lengths}
    if engine.compiler is None:
        least = SHORT if engine.model.dtype in TOLERANCE else BLOCK + _BEYOND
        lengths = {max(least, beyond_window(engine.model, max(lengths)))}
    for length in lengths - engine.checked:
        if fault := fault_of(partial(_fault, engine, length)):
            instead = INSTEAD if engine.compiler is None else f"{UNCOMPILED}, or {INSTEAD}"
            raise ScoringError(
                f"{type(engine.model).__name__} cannot be scored: {fault}; {instead}"
            )
        engine.checked.add(length)


def _fault(engine: Engine, padded: int) -> str | None:
    """Compare a row of two sequences that share a prefix, padded to a length."""
    vocabulary = engine.vocab_size
    length = min(max(BLOCK + _BEYOND, beyond_window(engine.model, padded)), padded)
    # A prime step: no id comes twice before the vocabulary is used up, so every place is distinguishable.
    tokens = (1 + np.arange(length) * 7919) % vocabulary
    fork = length - 1 - min(8, length // 4)
    shared = max(1, fork - 2)
    pair = [tokens[:fork], np.concatenate([tokens[:shared], tokens[fork:]])]
    last = min(LAST, *map(len, pair))
    # Each input ends at one of the last positions, and is asked for each of the compared tokens.
    inputs = [key_of(one[: len(one) - n]) for one in pair for n in range(last)[::-1]]
    targets = [key_of([token]) for token in compared(vocabulary).tolist()]
    asked = list(product(inputs, targets))
    batch = PackedRows(asked, lambda shared: shared + 2 * length).batch([0], padded)
    found = np.empty(len(asked))
    with engine.prepared():
        found[batch.owner] = engine.score(batch)[0].double().cpu()
    values = found.reshape(2, last, -1)
    return next(filter(None, map(partial(difference, engine.model), pair, values)), None)


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


def beyond_window(model: PreTrainedModel, length: int) -> int:
    """Return a length beyond the window that the class declares; 0 if no row of `length` exceeds it."""
    window = declared(model.config, "sliding_window") or length
    return window + _BEYOND if window < length else 0


def difference(model: PreTrainedModel, tokens: Ints, found: Values) -> str | None:
    """Return by how much log-probabilities (last, tokens) differ from the model's own, if not by rounding."""
    own = _reference(model, tokens, len(found))
    is_mixed = any(type(module).__name__.endswith("Experts") for module in model.modules())
    allowed = TOLERANCE.get(model.dtype, EXPERTS if is_mixed else NARROW)
    error = float(np.linalg.norm(found - own) / np.linalg.norm(own))
    # Slopes of values less their mean, one for each position.
    ours, theirs = (values - values.mean(axis=1, keepdims=True) for values in (found, own))
    slopes = (ours * theirs).sum(axis=1) / np.maximum((theirs * theirs).sum(axis=1), 1e-300)
    noise = scipy.stats.t.ppf(1 - 1e-4, len(slopes) - 1) * scipy.stats.sem(slopes)
    slope = float(slopes.mean())
    # False for NaN, which scoring reports.
    if error > allowed or abs(slope - 1) > max(SLOPE, noise):
        return (
            "its own log-probabilities differ from those of its body and head with a mask by "
            f"{error:.1e} (relative L2, at most {allowed:.0e} in {model.dtype}; slope {slope:.4f})"
        )
    return None


def _reference(model: PreTrainedModel, tokens: Ints, last: int) -> Values:
    """Return log-probabilities (last, tokens) by the model's own forward pass over a sequence."""
    ids = torch.from_numpy(tokens[None]).to(model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=last).logits[0, -last:]
    logprobs = logits.double().log_softmax(-1)
    values: Values = logprobs[:, compared(logprobs.shape[1])].cpu().numpy()
    return values
