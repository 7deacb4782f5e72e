"""Compare an engine's scores with the model's own, once for each shape and kind of mask.

Some classes scale their logits after the head, or carry a state past any mask; a compiler or a kernel
may be wrong. All of these would give wrong scores without an error. The check runs what scoring will
run: the same shapes and masks, the same compiled layers, the head, and a padded row that is longer than
a block of attention and than the layers' window.

The reference is transformers' own forward pass over each sequence alone: in float64 if the engine is
compiled, otherwise in the model's own dtype. Log-probabilities are compared by the relative L2 norm of
their difference.
"""

import contextlib
import copy
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils._pytree import tree_map
from transformers import PreTrainedModel

from evaluation.errors import CompileError, ScoringError
from evaluation.scoring.engine.batches import Batch, Shape, collate
from evaluation.scoring.engine.faults import gpu_faults
from evaluation.scoring.engine.masks import BLOCK
from evaluation.scoring.engine.packed_rows import PackedRow
from evaluation.scoring.engine.prepared import PreparedModel
from evaluation.wording import with_class

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}
"""Tolerance of each dtype: rounding in float32 causes about 1e-6."""
NARROW = 1e-2
"""Tolerance of narrower dtypes: bfloat16 causes about 4e-3; raised if transformers' own pass is worse."""
EXPERTS = 5e-2
"""Tolerance of narrower dtypes if rounding may route a token to other experts."""

SHORT = 5
"""Tokens of the first comparison of an uncompiled engine, which every job makes: few, with a fork."""
LONGEST = 4608
"""Most tokens of a sequence that is compared: longer than the windows of common models."""
COMPARED = 64
"""Number of token ids whose log-probability is compared at each of the last positions: enough for a norm,
and few beside the float64 pass of the reference."""
LAST = 3
"""Number of positions at the end of each sequence that are compared. A wrong mask or a state that was carried
on shows there at the latest, as these positions see all others."""
_SIZE = re.compile("window(?!_layers)|chunk")
REFUSALS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of a class that does not take what this project gives it."""
_BEYOND = 40  # tokens after the end of a block or a window, so that the last positions are well outside it
_HEAD_ROWS = 8192  # rows of a head that are converted to float64 at once: 268 MB for 4,096 columns


class ComparedRow(NamedTuple):
    """A row, and its sequences: the tokens of each, and their indices in the row."""

    row: PackedRow
    sequences: list[tuple[NDArray[np.int64], NDArray[np.int64]]]


def check_eager(engine: PreparedModel, length: int = SHORT) -> None:
    """Compare a trie with the model's own passes.

    Raises:
        ScoringError: When they differ by more than rounding, or the class takes no mask.
        torch.OutOfMemoryError: When a GPU's memory is exhausted.
    """
    sample = _sample(length, engine.vocab_size, is_trie=True)
    _compare(engine, collate([sample.row], len(sample.row)), sample)


def check_shape(engine: PreparedModel, shape: Shape, *, is_causal: bool) -> None:
    """Compare a row in a compiled shape with the model's own passes.

    Args:
        is_causal: Whether the row is one plain sequence; otherwise it is a trie.

    Raises:
        CompileError: When they differ by more than rounding, or the class takes no mask; uncompiled
            layers may be right.
        torch.OutOfMemoryError: When a GPU's memory is exhausted.
    """
    length = min(max(BLOCK + _BEYOND, beyond_windows(engine.model, shape.length)), shape.length)
    sample = _sample(length, engine.vocab_size, is_trie=not is_causal)
    batch = collate([sample.row], shape.length, count=shape.rows, is_trie=not is_causal)
    _compare(engine, batch, sample)


def beyond_windows(model: PreTrainedModel, length: int) -> int:
    """Return a length beyond every window that is shorter than rows of `length`; 0 if there is none.

    Every key of the configuration that is named like a window counts, even if the class ignores it.
    """
    sizes = [size for size in _window_sizes(model.config.to_dict()) if size]
    most = min(LONGEST, max(length, getattr(model.config, "max_position_embeddings", 0)))
    return min(max((size + _BEYOND for size in sizes if size < length), default=0), most)


def _window_sizes(table: dict[str, Any]) -> Iterator[int]:
    """Yield the values of all keys that are named like a window or chunk, in nested tables, too."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _window_sizes(value)
        elif type(value) is int and _SIZE.search(key):
            yield value


def _sample(length: int, vocab_size: int, *, is_trie: bool) -> ComparedRow:
    """Return one sequence; or, as a trie, a slightly shorter one and a second that branches off it."""
    index = np.arange(length)
    # A prime step: no id comes twice before the vocabulary is used up, so every place is distinguishable.
    tokens = (1 + index * 7919) % vocab_size
    fork = length - 1 - min(8, length // 4)
    first = np.arange(fork if is_trie else length)
    sequences = [first]
    depth, end = index.copy(), np.full(length, length)
    if is_trie:
        shared = fork - LAST + 1 if fork > LAST else 1
        depth[fork:] = shared + np.arange(length - fork)
        end[shared:fork] = fork
        sequences.append(np.append(np.arange(shared), np.arange(fork, length)))
    queries = np.unique(np.concatenate([places[-LAST:] for places in sequences]))
    count = min(COMPARED, vocab_size)
    row = PackedRow(
        tokens=tokens,
        depth=depth,
        end=end,
        pair_query=queries.repeat(count),
        pair_token=np.tile(compared_tokens(vocab_size), len(queries)),
        owners=np.array([0]),
        counts=np.array([count * len(queries)]),
    )
    return ComparedRow(row, [(tokens[places], places) for places in sequences])


def compared_tokens(vocab_size: int) -> NDArray[np.int64]:
    """Return at most COMPARED token ids, spread evenly over the vocabulary, up to its last row."""
    return np.linspace(0, vocab_size - 1, min(COMPARED, vocab_size)).astype(np.int64)


def compared_logprobs(logits: torch.Tensor, vocab_size: int) -> NDArray[np.float64]:
    """Return the log-probabilities (positions, tokens) of `compared_tokens` from logits (positions, V)."""
    compared = torch.from_numpy(compared_tokens(vocab_size)).to(logits.device)
    logprobs: NDArray[np.float64] = logits.double().log_softmax(-1)[:, compared].cpu().numpy()
    return logprobs


@torch.inference_mode()
def _compare(engine: PreparedModel, batch: Batch, sample: ComparedRow) -> None:
    queries = np.unique(sample.row.pair_query)
    with _as_sentences(engine):
        ours = engine.begin(batch).scores().logprob.reshape(len(queries), -1)
    for tokens, places in sample.sequences:
        found = ours[np.searchsorted(queries, places[-LAST:])]
        with _as_sentences(engine), gpu_faults():
            is_exact = engine.is_compiled and not _has_experts(engine.model)
            error, allowed = difference(engine.model, tokens, found, is_exact=is_exact)
        if error > allowed:  # False for NaN, which scoring reports
            raise _refusal(
                engine,
                "its own log-probabilities differ from those of its body and head with a mask by "
                f"{error:.1e} (relative L2, at most {allowed:.0e} in {engine.model.dtype})",
            )


def _refusal(engine: PreparedModel, reason: str) -> ScoringError:
    """Return the error of an engine that cannot be used; a compiled one may be usable uncompiled."""
    name = type(engine.model).__name__
    if engine.is_compiled:
        return CompileError(f"{name}, compiled, cannot be scored: {reason}")
    return ScoringError(f"{name} cannot be scored: {reason}; score it by a `command` of your own")


@contextlib.contextmanager
def _as_sentences(engine: PreparedModel) -> Iterator[None]:
    """Raise a refusal for a class that fails, for instance with a mask."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (*REFUSALS, RuntimeError) as error:
        raise _refusal(
            engine, f"it does not take a mask and positions for each token ({with_class(error)})"
        ) from None


def difference(
    model: PreTrainedModel,
    tokens: NDArray[np.int64],
    logprobs: NDArray[np.float64],
    *,
    is_exact: bool = False,
) -> tuple[float, float]:
    """Return the relative L2 difference of log-probabilities from the model's own, and its tolerance.

    In a narrow dtype the tolerance is at least twice the difference of the model's own pass from
    float64.

    Args:
        tokens: The sequence, (T,).
        logprobs: Log-probabilities of `compared_tokens` after each of the last tokens, (last, tokens).
        is_exact: Whether the model's own are computed in float64.
    """
    last = len(logprobs)
    expected = _reference(model, tokens, last, is_exact=is_exact)
    error = _difference(logprobs, expected)
    allowed = _tolerance(model)
    if error > allowed == NARROW:
        exact = _reference(model, tokens, last, is_exact=True)
        rounded = _reference(model, tokens, last, is_exact=False)
        error, allowed = _difference(logprobs, exact), max(NARROW, 2 * _difference(rounded, exact))
    return error, allowed


def _tolerance(model: PreTrainedModel) -> float:
    """Return the relative L2 difference that rounding in the model's dtype may cause."""
    return TOLERANCE.get(model.dtype, EXPERTS if _has_experts(model) else NARROW)


def _has_experts(model: PreTrainedModel) -> bool:
    """Return whether the model is a mixture of experts."""
    return any(type(module).__name__.endswith("Experts") for module in model.modules())


def _difference(found: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def _reference(
    model: PreTrainedModel, tokens: NDArray[np.int64], last: int, *, is_exact: bool
) -> NDArray[np.float64]:
    """Return log-probabilities (last, tokens) by the model's own forward pass over a sequence."""
    embedding = model.get_input_embeddings().weight
    ids = torch.from_numpy(tokens[None]).to(embedding.device)
    with torch.inference_mode(), in_float64(model) if is_exact else contextlib.nullcontext():
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=last).logits[0, -last:]
    return compared_logprobs(logits, len(embedding))


@contextlib.contextmanager
def in_float64(model: PreTrainedModel) -> Iterator[None]:
    """Have a model compute in float64; only one layer at a time is converted."""
    parts = _parts(model, set(model._no_split_modules or ()))
    for part in parts:
        part.forward = partial(_widened, part)
    try:
        yield
    finally:
        for part in parts:
            del part.forward


def _parts(module: nn.Module, layers: set[str]) -> list[nn.Module]:
    """Return modules with weights that cover the model and hold at most one decoder layer each."""
    if type(module).__name__ in layers or not any(
        type(inner).__name__ in layers for inner in module.modules()
    ):
        return [module] if next(module.parameters(), None) is not None else []
    return [part for child in module.children() for part in _parts(child, layers)]


def _widened(part: nn.Module, *inputs: Any, **named: Any) -> Any:
    """Run a module's own forward pass in float64, without a copy of an embedding or a head."""
    if isinstance(part, nn.Embedding):
        return type(part).forward(part, *inputs, **named).double()  # some scale what they look up
    if type(part) is nn.Linear:
        bias = part.bias.double() if part.bias is not None else 0
        rows = torch.split(part.weight, _HEAD_ROWS)
        return torch.cat([_wide(inputs[0]) @ row.double().T for row in rows], dim=-1) + bias
    twin = copy.deepcopy(part).double()
    inputs, named = tree_map(_wide, (inputs, named))
    return type(part).forward(twin, *inputs, **named)


def _wide(value: Any) -> Any:
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if is_float else value
