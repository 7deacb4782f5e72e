"""How large a change of a rate has to be so that so many prompts show it.

Said before anything is known of a difference, so in terms of how many prompts change their verdict
at all: those that change for the better and those that change for the worse cancel in the rate, and
each adds noise. McNemar's exact test at ALPHA, to which only prompts that change matter.
"""

import functools

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evaluation.bridge.discordance import FEWEST_TO_REJECT, HALVINGS, mcnemar
from evaluation.bridge.statistics import ALPHA, POWER
from evaluation.metrics.spread import Floats

SHARES = (0.1, 0.2, 0.3)
"""Of prompts that change their verdict, for which the sentence says what would be seen."""


def power(n: int, change: float, changing: float) -> float:
    """Chance that a change of the rate is shown, if so large a share of n prompts changes."""
    worse = (1 - change / changing) / 2
    losses = _most_losses(n)
    chance = np.where(losses < 0, 0.0, special.bdtr(np.maximum(losses, 0), np.arange(n + 1), worse))
    return float(_binomial(n, changing) @ chance)


def smallest_shown(n: int, changing: float | None) -> float | None:
    """The change of a rate that is shown with probability POWER; None if none is.

    `changing` is the share of prompts that change their verdict; None if all that change do so in
    one direction.
    """
    low, high = 0.0, 1.0 if changing is None else changing
    if n < FEWEST_TO_REJECT or power(n, high, high) < POWER:
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_shown = power(n, middle, middle if changing is None else changing) >= POWER
        low, high = (low, middle) if is_shown else (middle, high)
    return high


def power_sentence(n: int, unit: str) -> str:
    """What n prompts (a tier's `unit`) can show, for a reader who knows no statistics."""
    least = smallest_shown(n, None)
    if least is None:
        return f"With {n} {unit}, no change of a rate can be shown with probability {POWER:g}."
    others = ""
    for share in SHARES:
        value = smallest_shown(n, share)
        if value is not None:
            whose = "" if others else f" of {unit} change their verdict"
            others += f", {_points(value)} if {100 * share:.0f} %{whose}"
    return (
        f"With {n} {unit}, a change of a rate is shown with probability {POWER:g} if it is at least "
        f"{_points(least)} percentage points and all in one direction{others}."
    )


def _points(change: float) -> str:
    return f"{100 * change:.2g}"


@functools.cache
def _most_losses(n: int) -> NDArray[np.int64]:
    """Of 0 to n prompts that change, how many may be losses so that the exact test rejects; -1: none."""
    found = np.full(n + 1, -1, dtype=np.int64)
    for pairs in range(1, n + 1):  # one prompt more allows one loss more at most
        losses = found[pairs - 1] + 1
        found[pairs] = losses if mcnemar(pairs - losses, losses) < ALPHA else losses - 1
    return found


def _binomial(n: int, share: float) -> Floats:
    """Probabilities of 0 to n, of share each."""
    k = np.arange(n + 1)
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    found: Floats = np.exp(ways + special.xlogy(k, share) + special.xlog1py(n - k, -share))
    return found
