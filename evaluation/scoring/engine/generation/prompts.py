"""Prefill the prompts that still need answers, some at a time before rows are free for them.

Prefixes that prompts have in common (few-shot examples, preambles) are prefilled once.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from evaluation.scoring.answers import GenerationRequest
from evaluation.scoring.engine.generation.kv_cache import PrefillCache, Prefix

Forward = Callable[[torch.Tensor, torch.Tensor, PrefillCache], torch.Tensor]
"""Last hidden states (B, T, D) of ids (B, T) at positions (1, T)."""

Tokens = tuple[int, ...]

_NEARLY = 0.85  # least length of prompts that are read together, relative to the longest
_READ_TOKENS = {"cpu": 2048, "cuda": 8192}  # most tokens read together, unless one prompt has more
_SHARED_FROM = 32
"""Least tokens of a prefix that is read once; sharing a shorter one costs each step more than it saves."""
_DEEPEST = 20  # most nested splits; chains in which each prompt begins the next would need many


@dataclass(eq=False)
class Family:
    """Indices of prompts, and the number of their common first tokens, which are read once as `stem`."""

    shared: int
    members: list[int]
    stem: Prefix | None = None

    @property
    def saved(self) -> int:
        """Number of tokens that need not be read again."""
        return self.shared * (len(self.members) - 1)


@dataclass(eq=False)
class PrefilledPrompt:
    """A prefilled prompt: its part after the stem, and the logits (V,) of the first new token."""

    index: int
    request: GenerationRequest
    stem: Prefix | None
    rest: Prefix
    logits: torch.Tensor
    samples: list[int] = field(default_factory=list)
    """Indices of samples that are not in a row yet, the next one last."""


class PromptQueue:
    """Returns prefilled prompts: the family with the longest prompt first, its longest prompts first.

    Args:
        wanted: Requested samples, by index of the request.
    """

    def __init__(
        self,
        requests: Sequence[GenerationRequest],
        wanted: dict[int, list[int]],
        forward: Forward,
        logits: Callable[[torch.Tensor], torch.Tensor],
        windows: Sequence[int | None],
        device: torch.device,
    ) -> None:
        self._requests, self._wanted = requests, wanted
        self._forward, self._logits = forward, logits
        self._windows, self._device = windows, device
        self._ready: list[PrefilledPrompt] = []
        order = sorted(wanted, key=lambda index: requests[index].tokens)
        self._families = _split([request.tokens for request in requests], order)
        for family in self._families:  # the longest last
            family.members.sort(key=self._length)
        self._families.sort(key=lambda family: self._length(family.members[-1]))

    def _length(self, index: int) -> tuple[int, int]:
        request = self._requests[index]
        return len(request.tokens) + request.max_new_tokens, len(request.tokens)

    def next(self) -> PrefilledPrompt | None:
        """Return a prompt with samples to be taken, prefilled if need be; None when all are taken."""
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
                PrefilledPrompt(
                    index, self._requests[index], family.stem, prefix, logits[row], samples
                )
            )

    def _group(self, family: Family) -> list[int]:
        """Take prompts of nearly the same length, as many as one forward pass should read."""
        chosen: list[int] = []
        lengths: list[int] = []
        while family.members:
            lengths.append(len(self._requests[family.members[-1]].tokens) - family.shared)
            is_full = len(lengths) * max(lengths) > _READ_TOKENS[self._device.type]
            if chosen and (is_full or min(lengths) < _NEARLY * max(lengths)):
                break
            chosen.append(family.members.pop())
        return chosen

    def _run(
        self, rests: Sequence[Tokens], stem: Prefix | None
    ) -> tuple[PrefillCache, torch.Tensor]:
        """Run the model on tokens that follow the stem, padded on the right."""
        start, longest = stem.stop if stem else 0, max(map(len, rests))
        ids = torch.tensor([[*rest, *[0] * (longest - len(rest))] for rest in rests])
        positions = torch.arange(start, start + longest, device=self._device)[None]
        reading = PrefillCache([stem] if stem else [], self._windows, positions)
        return reading, self._forward(ids.to(self._device), positions, reading)


def _split(prompts: Sequence[Tokens], members: list[int], depth: int = 0) -> list[Family]:
    """Split sorted members into families so that sharing prefixes saves the most tokens.

    At least the last token of a prompt is never shared, since its answer begins there. The first and
    the last member differ the most.
    """
    first, last = prompts[members[0]], prompts[members[-1]]
    common = _common(first, last)
    shared = min(common, len(first) - 1) if len(members) > 1 else 0
    whole = [Family(shared if shared >= _SHARED_FROM else 0, members)]
    if common == len(last) or depth == _DEEPEST:
        return whole
    parts = itertools.groupby(members, lambda index: prompts[index][common : common + 1])
    deeper = [family for _, part in parts for family in _split(prompts, [*part], depth + 1)]
    return max(whole, deeper, key=lambda found: sum(family.saved for family in found))


def _common(left: Tokens, right: Tokens) -> int:
    """Return the number of common first tokens."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(left), len(right)))
