"""Student's t of a skewed mean, made nearly symmetric (Hall, JRSS B 54, 1992).

With s the skewness of the estimate (third cumulant over the standard deviation cubed; the items' own
over sqrt(n)), the statistic T = (estimate - truth) / se is turned into

    g(T) = T + s T^2 / 3 + s^2 T^3 / 27 + s / 6

which follows Student's t to the next order, as the bootstrap-t does, without random draws. g rises
everywhere, so intervals and p-values agree.
"""

import numpy as np


def symmetric(t: float, skew: float) -> float:
    """g(T)."""
    return t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6


def skewed(x: float, skew: float) -> float:
    """The T for which g(T) = x."""
    if abs(skew) < 1e-9:
        return x
    return float(3 / skew * (np.cbrt(1 + skew * (x - skew / 6)) - 1))
