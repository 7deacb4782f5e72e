"""pass@k and its relatives, from how many of a prompt's samples are right.

pass@k    chance that one of k samples is right, without bias: 1 - C(n-c, k) / C(n, k)
          (Chen et al. 2021, arXiv 2107.03374)
cons@k    whether the answer that most of the samples give is right; answers that tie for the most
          share the credit
"""

import math
from collections import Counter
from collections.abc import Sequence

from evaluation.errors import ScoringError


def pass_at_k(n: int, right: int, k: int) -> float:
    """Return the chance that one of k of n samples is right, without bias; raise ScoringError when k > n."""
    if k > n:
        raise ScoringError(f"pass@{k} cannot be computed from {n} samples; raise `sampling.n`")
    if n - right < k:
        return 1.0
    return 1.0 - math.prod((n - right - i) / (n - i) for i in range(k))


def powers(n: int) -> list[int]:
    """Return the k for which pass@k is computed: 1, 2, 4 … and n itself."""
    return sorted({2**i for i in range(n.bit_length())} | {n})


def majority(answers: Sequence[str | None], right: Sequence[bool]) -> float:
    """Return the credit of a prompt's most frequent answer (cons@n); answers that tie share it.

    Args:
        answers: The answer of each sample; None for no answer, which does not count.
    """
    given = [(answer, ok) for answer, ok in zip(answers, right, strict=True) if answer is not None]
    if not given:
        return 0.0
    counts = Counter(answer for answer, _ in given)
    most = max(counts.values())
    best = {answer for answer, count in counts.items() if count == most}
    shares = {answer: [ok for one, ok in given if one == answer] for answer in best}
    return math.fsum(sum(oks) / len(oks) for oks in shares.values()) / len(best)
