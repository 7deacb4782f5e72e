"""Compares an engine's scores with the model's own, once for each way that passes run.

Some classes scale their logits behind the head, or carry a state past any mask; a compiler or a
kernel may be wrong. Either would score wrongly without notice. What is compared is what will run:
the same shapes and masks, layers compiled where they are, a row that is padded, longer than a block
of attention and than the layers' window, and the head.

The other side is transformers' own forward pass over each sequence alone: in float64 where the
engine is compiled, on CPU in the model's own type. Compared are log-probabilities, by the relative
L2 norm of the difference.
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
from evaluation.scoring.engine.masks import BLOCK
from evaluation.scoring.engine.packed_rows import PackedRow
from evaluation.scoring.engine.prepared import PreparedModel

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}
"""Difference allowed, by type: rounding of float32 makes some 1e-6."""
NARROW = 1e-2
"""Tolerance of narrower types: bfloat16 makes some 4e-3; more where transformers' own pass is worse."""
EXPERTS = 5e-2
"""Tolerance of narrower types where rounding may send a token to other experts."""

SHORT = 5
"""Tokens of the first comparison of an engine that is not compiled."""
LONGEST = 4608
"""Tokens of a sequence that is compared: longer than the windows that are in use."""
ASKED = 64
"""Tokens whose log-probability is compared at each of the last positions."""
LAST = 3
"""Positions at the end of each sequence that are compared."""
_SIZE = re.compile("window(?!_layers)|chunk")
_REFUSALS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
_BEYOND = 40  # tokens behind the end of a block or a window
_HEAD_ROWS = 8192  # of a head that are widened at once


class Sample(NamedTuple):
    """A row, and the sequences in it: their tokens, and where in the row they stand."""

    row: PackedRow
    sequences: list[tuple[NDArray[np.int64], NDArray[np.int64]]]


def check_eager(engine: PreparedModel, length: int = SHORT) -> None:
    """Compare a trie with the model's own passes.

    Args:
        engine: A model whose layers are not compiled.
        length: Tokens of the trie.

    Raises:
        ScoringError: When they differ by more than rounding, or the class takes no mask.
        torch.OutOfMemoryError: When a GPU has too little left.
    """
    sample = _sample(length, engine.vocab_size, is_trie=True)
    _compare(engine, collate([sample.row], len(sample.row)), sample)


def check_shape(engine: PreparedModel, shape: Shape, *, is_causal: bool) -> None:
    """Compare a row in a compiled shape with the model's own passes.

    Args:
        engine: A model whose layers are compiled.
        shape: Rows of the pass, and tokens of each.
        is_causal: Whether the row is one plain sequence; else it is a trie.

    Raises:
        CompileError: When they differ by more than rounding, or the class takes no mask; layers may
            be right without being compiled.
        torch.OutOfMemoryError: When a GPU has too little left.
    """
    length = min(max(BLOCK + _BEYOND, beyond_windows(engine, shape.length)), shape.length)
    sample = _sample(length, engine.vocab_size, is_trie=not is_causal)
    batch = collate([sample.row], shape.length, count=shape.rows, is_trie=not is_causal)
    _compare(engine, batch, sample)


def beyond_windows(engine: PreparedModel, length: int) -> int:
    """Return the length of a sequence that goes beyond every window that rows meet.

    A window is whatever the configuration calls one, also where the class does not heed it.

    Args:
        engine: The model.
        length: Tokens of the rows.

    Returns:
        Tokens of the sequence; 0 where rows meet no window.
    """
    windows = engine.windows.values() if isinstance(engine.windows, dict) else [engine.windows]
    met = [size for size in (*windows, *_named(engine.model.config.to_dict())) if size]
    most = min(LONGEST, max(length, getattr(engine.model.config, "max_position_embeddings", 0)))
    return min(max((size + _BEYOND for size in met if size < length), default=0), most)


def _named(table: dict[str, Any]) -> Iterator[int]:
    """Yield sizes of windows and chunks, by the names of their keys, in tables inside the table too."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _named(value)
        elif type(value) is int and _SIZE.search(key):
            yield value


def _sample(length: int, vocab_size: int, *, is_trie: bool) -> Sample:
    """Return one sequence; in a trie it ends a little earlier, and another leaves it before its end."""
    index = np.arange(length)
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
    asked = np.unique(np.concatenate([places[-LAST:] for places in sequences]))
    count = min(ASKED, vocab_size)
    row = PackedRow(
        tokens=tokens,
        depth=depth,
        end=end,
        pair_query=asked.repeat(count),
        pair_token=np.tile(_asked_tokens(vocab_size), len(asked)),
        owners=np.array([0]),
        counts=np.array([count * len(asked)]),
    )
    return Sample(row, [(tokens[places], places) for places in sequences])


def _asked_tokens(vocab_size: int) -> NDArray[np.int64]:
    """Return tokens all over the vocabulary, its last row included."""
    return np.linspace(0, vocab_size - 1, min(ASKED, vocab_size)).astype(np.int64)


@torch.inference_mode()
def _compare(engine: PreparedModel, batch: Batch, sample: Sample) -> None:
    asked = np.unique(sample.row.pair_query)
    with _as_sentences(engine):
        ours = engine.begin(batch).scores().logprob.reshape(len(asked), -1)
    for tokens, places in sample.sequences:
        found = ours[np.searchsorted(asked, places[-LAST:])]
        with _as_sentences(engine):
            error, allowed = _error(engine, tokens, found)
        if error > allowed:  # False for NaN, which scoring reports
            raise _refusal(
                engine,
                "its own log-probabilities differ from those of its body and head under a mask by "
                f"{error:.1e} (relative L2, at most {allowed:.0e} in {engine.model.dtype})",
            )


def _refusal(engine: PreparedModel, reason: str) -> ScoringError:
    """Return the error of an engine that cannot be used; one that is compiled may be without being so."""
    name = type(engine.model).__name__
    if engine.is_compiled:
        return CompileError(f"{name}, compiled, cannot be scored: {reason}")
    return ScoringError(f"{name} cannot be scored: {reason}; score it by a `command` of your own")


@contextlib.contextmanager
def _as_sentences(engine: PreparedModel) -> Iterator[None]:
    """Raise for a class that cannot compute what it is asked, as under a mask."""
    try:
        yield
    except _REFUSALS as error:
        what = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise _refusal(
            engine, f"it does not take a mask and positions for each token ({what})"
        ) from None


def _error(
    engine: PreparedModel, tokens: NDArray[np.int64], found: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the difference of log-probabilities (last, asked) from the model's own, and what is allowed.

    In a narrow type, twice as much as the model's own pass in it differs from float64.
    """
    model, last = engine.model, len(found)
    is_exact = engine.is_compiled and not _has_experts(model)
    expected = _reference(engine, tokens, last, is_exact=is_exact)
    error = _difference(found, expected)
    allowed = _tolerance(model)
    if error > allowed == NARROW:
        exact = _reference(engine, tokens, last, is_exact=True)
        rounded = _reference(engine, tokens, last, is_exact=False)
        error, allowed = _difference(found, exact), max(NARROW, 2 * _difference(rounded, exact))
    return error, allowed


def _tolerance(model: PreTrainedModel) -> float:
    """Return the relative L2 difference that rounding in the model's type may make."""
    return TOLERANCE.get(model.dtype, EXPERTS if _has_experts(model) else NARROW)


def _has_experts(model: PreTrainedModel) -> bool:
    """Return whether tokens choose the weights they go through."""
    return any(type(module).__name__.endswith("Experts") for module in model.modules())


def _difference(found: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def _reference(
    engine: PreparedModel, tokens: NDArray[np.int64], last: int, *, is_exact: bool
) -> NDArray[np.float64]:
    """Return log-probabilities (last, asked) by the model's own forward pass over a sequence."""
    model = engine.model
    ids = torch.from_numpy(tokens[None]).to(engine.device)
    with in_float64(model) if is_exact else contextlib.nullcontext():
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=last).logits[0, -last:]
    asked = torch.from_numpy(_asked_tokens(engine.vocab_size)).to(logits.device)
    found: NDArray[np.float64] = logits.double().log_softmax(-1)[:, asked].cpu().numpy()
    return found


@contextlib.contextmanager
def in_float64(model: PreTrainedModel) -> Iterator[None]:
    """Have a model compute in float64, of which only one layer at a time is there so wide.

    Args:
        model: The model, changed within the block.
    """
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
    """Run a part's own forward pass in float64; of an embedding or a head, without a copy of it."""
    if isinstance(part, nn.Embedding):
        return nn.Embedding.forward(part, *inputs, **named).double()
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
