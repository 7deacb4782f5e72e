"""Exact tests of items that pass or fail: McNemar's test and Tango's interval.

Items that are right on both sides, or wrong on both, say nothing about a difference; only discordant
items do, `wins` and `losses`:

    p-value    exact binomial: a fair coin for each discordant item (McNemar's exact test)
    interval   Tango's score interval (Statistics in Medicine 17, 1998), which also holds for no
               discordant item at all: +-z^2 / (n + z^2), the score test's rule of three. Where the
               exact test does not reject, zero is inside: the interval is extended to it.
    error      Bonett and Price's (BJMSP 65, 2012), with a win and a loss more, which is never 0
"""

import math
from typing import NamedTuple

from scipy import special

_HALVINGS = 50


class PairCounts(NamedTuple):
    """Items that pass on our side alone, on theirs alone, and all items."""

    wins: int
    losses: int
    n: int

    @property
    def error(self) -> float:
        """The standard error of the difference of both rates."""
        wins, losses, n = self.wins + 1, self.losses + 1, self.n + 2
        return math.sqrt((wins + losses - (wins - losses) ** 2 / n) / n**2)

    def beyond(self, bound: float, *, above: bool) -> float:
        """Return the one-sided p-value of the claim that the true difference lies beyond a bound."""
        wins, losses, n = self
        if not above:
            wins, losses, bound = losses, wins, -bound
        by_coin = float(special.bdtr(losses, wins + losses, 0.5))
        if bound == 0:
            return by_coin
        p = float(special.ndtr(-_score(wins, losses, n, bound)))
        return max(p, by_coin) if bound > 0 else p

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return Tango's interval, with zero in it where the exact test does not reject."""
        z, centre = -float(special.ndtri(alpha / 2)), (self.wins - self.losses) / self.n
        low, high = self._bound(centre, -1.0, z), self._bound(centre, 1.0, z)
        is_shown = mcnemar(self.wins, self.losses) < alpha
        return (low, high) if is_shown else (min(low, 0.0), max(high, 0.0))

    def _bound(self, near: float, end: float, z: float) -> float:
        """Return where the score reaches z between the observed difference and an end, by bisection."""
        if abs(_score(*self, end)) <= z:
            return end
        for _ in range(_HALVINGS):
            middle = (near + end) / 2
            near, end = (near, middle) if abs(_score(*self, middle)) > z else (middle, end)
        return near


def mcnemar(wins: int, losses: int) -> float:
    """Return the two-sided p-value of McNemar's exact test; 1 where no item differs."""
    return min(1.0, 2 * float(special.bdtr(min(wins, losses), wins + losses, 0.5)))


def _score(wins: int, losses: int, n: int, d: float) -> float:
    """Return Tango's score of a difference d: (wins - losses - n d) / sqrt(n (2 q + d (1 - d))).

    q is the rate of losses that is likeliest given d, the root of 2n q^2 + (-wins - losses + (2n - wins +
    losses) d) q - losses d (1 - d).
    """
    linear = -wins - losses + (2 * n - wins + losses) * d
    root = math.sqrt(max(0.0, linear**2 + 8 * n * losses * d * (1 - d)))
    variance = n * ((root - linear) / (2 * n) + d * (1 - d))
    return (wins - losses - n * d) / math.sqrt(max(variance, 1e-12))
