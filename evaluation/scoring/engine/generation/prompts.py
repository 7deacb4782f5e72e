"""Prompts that still need answers, read some at a time before there is a row for them.

Prefixes that prompts have in common (few-shot examples, preambles) are read once.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from evaluation.scoring.answers import GenerationRequest
from evaluation.scoring.engine.generation.kv_cache import Prefix, Reading

Forward = Callable[[torch.Tensor, torch.Tensor, Reading], torch.Tensor]
"""Last hidden states (B, T, D) of ids (B, T) at positions (1, T)."""

Tokens = tuple[int, ...]

_NEARLY = 0.85  # prompts read together are at least this long, relative to the longest
_READ_TOKENS = {"cpu": 2048, "cuda": 8192}  # and so many in all, unless one alone is longer
_WORTH = 32
"""Tokens from which on a common prefix is read once; a shorter one costs each step more than it saves."""
_DEEPEST = 20  # splits of splits; a prompt that is the beginning of the next, and so on, has many


@dataclass(eq=False)
class Family:
    """Indices of prompts and how many tokens they have in common, read once as `stem`."""

    shared: int
    members: list[int]
    stem: Prefix | None = None

    @property
    def saved(self) -> int:
        """Tokens that are not read again."""
        return self.shared * (len(self.members) - 1)


@dataclass(eq=False)
class Prompt:
    """A prompt that was read: what follows the stem, and the logits (V,) of the first new token."""

    index: int
    request: GenerationRequest
    stem: Prefix | None
    rest: Prefix
    logits: torch.Tensor
    samples: list[int] = field(default_factory=list)
    """Those that are not in a row yet, the next one last."""


class Queue:
    """Gives prompts, the longest families and of these the longest prompts first.

    Args:
        requests: All prompts.
        wanted: Samples that are to be made, by index of the request.
        forward: Reads tokens.
        logits: Makes logits of hidden states, (B, D) to (B, V).
        windows: Window of each layer, in tokens; None sees everything.
        device: Where the model's first layer is.
    """

    def __init__(
        self,
        requests: Sequence[GenerationRequest],
        wanted: dict[int, list[int]],
        *,
        forward: Forward,
        logits: Callable[[torch.Tensor], torch.Tensor],
        windows: Sequence[int | None],
        device: torch.device,
    ) -> None:
        self._requests, self._wanted = requests, wanted
        self._forward, self._logits = forward, logits
        self._windows, self._device = windows, device
        self._ready: list[Prompt] = []
        indices = list(wanted)
        self._families = _families([requests[index].tokens for index in indices])
        for family in self._families:  # the longest last
            family.members = sorted((indices[i] for i in family.members), key=self._length)
        self._families.sort(key=lambda family: self._length(family.members[-1]))

    def _length(self, index: int) -> tuple[int, int]:
        request = self._requests[index]
        return len(request.tokens) + request.max_new_tokens, len(request.tokens)

    def next(self) -> Prompt | None:
        """Return a prompt with a sample that is in no row yet; read more prompts if there is none.

        Returns:
            The prompt, whose `samples` the caller takes; None when all are taken.
        """
        while self._ready and not self._ready[0].samples:
            self._ready.pop(0)
        if not self._ready and self._families:
            self._read()
        return self._ready[0] if self._ready else None

    def _read(self) -> None:
        family = self._families[-1]
        if family.shared and family.stem is None:
            tokens = self._requests[family.members[0]].tokens[: family.shared]
            family.stem = self._run([tokens], None)[0].prefix(0, family.shared)
        chosen = self._group(family)
        if not family.members:
            self._families.pop()
        rests = [self._requests[index].tokens[family.shared :] for index in chosen]
        reading, hidden = self._run(rests, family.stem)
        last = torch.tensor([len(rest) - 1 for rest in rests], device=hidden.device)
        logits = self._logits(hidden[torch.arange(len(rests), device=hidden.device), last])
        for row, (index, rest) in enumerate(zip(chosen, rests, strict=True)):
            prefix = reading.prefix(row, len(rest))
            samples = self._wanted[index][::-1]
            self._ready.append(
                Prompt(index, self._requests[index], family.stem, prefix, logits[row], samples)
            )

    def _group(self, family: Family) -> list[int]:
        """Take prompts of nearly one length, as many as are read well in one pass."""
        chosen: list[int] = []
        lengths: list[int] = []
        while family.members:
            lengths.append(len(self._requests[family.members[-1]].tokens) - family.shared)
            is_full = len(lengths) * max(lengths) > _READ_TOKENS[self._device.type]
            if chosen and (is_full or min(lengths) < _NEARLY * max(lengths)):
                break
            chosen.append(family.members.pop())
        return chosen

    def _run(self, rests: Sequence[Tokens], stem: Prefix | None) -> tuple[Reading, torch.Tensor]:
        """Read tokens that follow the stem, padded on the right."""
        start, longest = stem.stop if stem else 0, max(map(len, rests))
        ids = torch.tensor([[*rest, *[0] * (longest - len(rest))] for rest in rests])
        positions = torch.arange(start, start + longest, device=self._device)[None]
        reading = Reading([stem] if stem else [], self._windows, positions)
        return reading, self._forward(ids.to(self._device), positions, reading)


def _families(prompts: Sequence[Tokens]) -> list[Family]:
    """Split prompts so that reading a shared prefix once for each family saves the most tokens.

    Of every prompt at least the last token is its own, for its answer begins there.
    """
    order = sorted(range(len(prompts)), key=prompts.__getitem__)
    return _split(prompts, order) if order else []


def _split(prompts: Sequence[Tokens], members: list[int], depth: int = 0) -> list[Family]:
    """Split members, which are sorted, so that the first and the last differ the most."""
    first, last = prompts[members[0]], prompts[members[-1]]
    common = _common(first, last)
    shared = min(common, len(first) - 1) if len(members) > 1 else 0
    whole = [Family(shared if shared >= _WORTH else 0, members)]
    if common == len(last) or depth == _DEEPEST:
        return whole
    parts = itertools.groupby(members, lambda index: prompts[index][common : common + 1])
    deeper = [found for _, part in parts for found in _split(prompts, [*part], depth + 1)]
    return max(whole, deeper, key=lambda found: sum(family.saved for family in found))


def _common(one: Tokens, other: Tokens) -> int:
    """Count the tokens at the beginning that are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
