"""Compare an engine's log-probabilities with the model's own, for each length of rows, and beyond windows.

A class may scale its logits behind the head, carry a state past any mask, or ignore masks; a kernel may
be wrong. All of these would give wrong scores or other tokens without an error. The check runs what
scoring and decoding run, on two sequences that share a prefix.

The reference is transformers' own pass over each sequence alone. The relative L2 norm of the difference
counts, and the slope of our values on the model's, beside its own noise: a scale of 1.01 shows there in
bfloat16, too.
"""

import subprocess
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import scipy.stats
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from evaluation.errors import EvaluationError, NonFiniteError, ScoringError, with_class
from evaluation.scoring.answers import Answers, GenerationRequest
from evaluation.scoring.engine.forward import BLOCK, Engine, declared
from evaluation.scoring.engine.generate import Decoding
from evaluation.scoring.engine.gpu import UNCOMPILED, gpu_faults
from evaluation.scoring.engine.packing import Ints, PackedRows, key_of

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}  # rounding in float32 causes about 1e-6
NARROW, EXPERTS = 1e-2, 5e-2  # bfloat16 causes about 4e-3, or may choose other experts
SLOPE = 2e-3  # how far from 1 the mean of least-squares slopes may be, if not by noise (p < 2e-4)

LENGTH = 48  # tokens of the comparison where rows have any length and no window is shorter
COMPARED = 64  # token ids whose log-probability is compared at each of the last positions
LAST = 32  # positions at the end of each sequence that are compared
ANSWER = 8  # tokens of an answer
REFUSALS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError),
    *(RuntimeError, subprocess.SubprocessError),
)
"""Errors of a class that does not take what this project gives it, and of compilers."""

_BEYOND = 60
"""Tokens after the end of a block or a window, so that the last positions are outside it."""

Values = NDArray[np.float64]
"""Log-probabilities (last positions, compared ids)."""

Sequences = Iterator[tuple[Ints, Values]]
"""Sequences, each with its last positions' log-probabilities by the engine."""


def ensure_scorable(engine: Engine, rows: PackedRows) -> None:
    """Compare each kind of pass that the rows need once; raise ScoringError where values differ."""
    lengths = {engine.padded(length) for length in rows.lengths}
    if engine.compiler is None:
        lengths = {max(LENGTH, _beyond_window(engine, max(lengths)))}
    for length in lengths:
        _ensure(engine, "scored", length, _by_rows)


def ensure_decodable(engine: Engine, longest: int) -> None:
    """Compare answers, once for each length of windows; raise ScoringError where logits differ."""
    _ensure(engine, "decoded", max(LENGTH, _beyond_window(engine, longest)), _by_decoding)


def _ensure(
    engine: Engine, what: str, length: int, values: Callable[[Engine, int], Sequences]
) -> None:
    if (what, length) in engine.checked:
        return
    try:
        with gpu_faults():
            faults = (_difference(engine.model, *one) for one in values(engine, length))
            fault = next(filter(None, faults), None)
    except NonFiniteError:
        fault = None  # scoring names what it came from
    except EvaluationError:
        raise
    except REFUSALS as error:
        fault = f"it does not take a mask and positions for each token ({with_class(error)})"
    if fault:
        instead = "" if engine.compiler is None else f"{UNCOMPILED}, or "
        raise ScoringError(
            f"{type(engine.model).__name__} cannot be {what}: {fault}; {instead}score it by a `command` of "
            "your own"
        )
    engine.checked.add((what, length))


def _pair(engine: Engine, length: int) -> tuple[Ints, Ints]:
    """Return two sequences that share a prefix, and have `length` different tokens together."""
    # A prime step: no id comes twice before the vocabulary is used up, so every place is distinguishable.
    tokens = (1 + np.arange(length) * 7919) % engine.vocab_size
    fork = length - 1 - min(8, length // 4)
    return tokens[:fork], np.concatenate([tokens[: max(1, fork - 2)], tokens[fork:]])


def _by_rows(engine: Engine, padded: int) -> Sequences:
    """Score a row of two sequences, padded to a length."""
    length = min(max(BLOCK + _BEYOND, _beyond_window(engine, padded)), padded)
    pair = _pair(engine, length)
    last = min(LAST, *map(len, pair))
    # Each input ends at one of the last positions, and is asked for each of the compared tokens.
    inputs = [key_of(one[: len(one) - n]) for one in pair for n in range(last)[::-1]]
    targets = [key_of([token]) for token in _compared(engine.vocab_size).tolist()]
    asked = list(product(inputs, targets))
    batch = PackedRows(asked, lambda shared: shared + 2 * length).batch([0], padded)
    found = np.empty(len(asked))
    with engine.prepared():
        found[batch.owner] = engine.score(batch)[0].double().cpu()
    yield from zip(pair, found.reshape(2, last, -1), strict=True)


def _by_decoding(engine: Engine, length: int) -> Sequences:
    """Decode three answers to two prompts; the last one refills a slot."""
    first, other = (tuple(one.tolist()) for one in _pair(engine, length))
    asked = [(first, ANSWER), (other, ANSWER - 3), (other, ANSWER - 3)]
    requests = {n: GenerationRequest(str(n), *one) for n, one in enumerate(asked)}
    decoding, answers = Decoding(engine, requests, engine.vocab_size, most=2), Answers()
    logits: dict[int, list[torch.Tensor]] = {key: [] for key in requests}
    with engine.prepared():
        while decoding.fill():
            for row, values in zip(decoding.rows, decoding.logits, strict=True):
                logits[row.key].append(values)
            answers |= decoding.step()
    for key, answer in answers.items():
        tokens = np.array([*requests[key].tokens, *answer.tokens[:-1]])
        yield tokens, _compared_logprobs(torch.stack(logits[key]))


def _compared(vocabulary: int) -> Ints:
    """Return at most COMPARED token ids, spread evenly over the vocabulary, up to its last row."""
    return np.linspace(0, vocabulary - 1, min(COMPARED, vocabulary)).astype(np.int64)


def _beyond_window(engine: Engine, length: int) -> int:
    """Return a length beyond the window that the class declares; 0 if no row of `length` exceeds it."""
    window = declared(engine.model.config, "sliding_window") or length
    return window + _BEYOND if window < length else 0


def _difference(model: PreTrainedModel, tokens: Ints, found: Values) -> str | None:
    """Return by how much log-probabilities differ from the model's own, if not by rounding."""
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
    """Return log-probabilities by the model's own forward pass over a sequence."""
    ids = torch.from_numpy(tokens[None]).to(model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=last).logits[0, -last:]
    return _compared_logprobs(logits)


def _compared_logprobs(logits: torch.Tensor) -> Values:
    """Return the log-probabilities of the compared ids from logits (positions, V)."""
    logprobs = logits.double().log_softmax(-1)
    values: Values = logprobs[:, _compared(logprobs.shape[1])].cpu().numpy()
    return values
