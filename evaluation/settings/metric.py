"""A metric of a tier's items: its unit, its direction, and how it is written."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

LARGEST = 700.0


@dataclass(frozen=True)
class Metric:
    """A metric of a tier's items; `unit` is the unit of its differences.

    `is_secondary` marks a secondary metric: it detects smaller differences, belongs to no family of tests,
    and decides nothing unless an objective names it. `worth` is the smallest difference that matters where
    no objective gives a margin. `least` and `most` bound a value in files; `stored_as` is its key there,
    if that is not its name. `kind` is that of a variant of another metric.

    A metric of blocks of text is the ratio of two columns' sums over the blocks, or its exponential
    (`metrics.ratios`); `in_bits` divides nats by ln 2. A metric of candidates has a formula in
    `metrics.measures`. A rate of probes counts checks of some kinds (`grading.probes`).
    """

    name: str
    _: KW_ONLY
    unit: str = "fraction"
    higher_is_better: bool = True
    digits: int = 4
    is_secondary: bool = False
    worth: float = 0.01
    called: str | None = None
    least: float | None = None
    most: float | None = None
    stored_as: str | None = None
    kind: str | None = None
    numerator: str = ""
    denominator: str = ""
    in_bits: bool = False
    link: Literal["identity", "exp"] = "identity"
    of_checks: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        return self.stored_as or self.name

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        is_share = self.unit == "fraction" and self.least is None and self.most is None
        return (0.0, 1.0) if is_share else (self.least, self.most)

    @property
    def is_free_of_tokens(self) -> bool:
        """Whether it means the same with every tokenizer."""
        return self.unit in ("fraction", "bits per byte") and self.denominator != "tokens"

    @property
    def words(self) -> str:
        return self.called or self.name.replace("_", " ")

    @property
    def change_unit(self) -> str:
        """The unit of differences that people read; files keep fractions."""
        return "points" if self.unit == "fraction" else self.unit

    @property
    def column(self) -> str:
        """Its name in a table of such numbers, with the unit where files have another."""
        return f"{self.name}, points" if self.unit == "fraction" else self.name

    def linked(self, ratio: float | None) -> float | None:
        """Return the value for a ratio, or for its bound; None where no float can hold it."""
        if ratio is None or self.link == "identity":
            return ratio
        return None if ratio > LARGEST else math.exp(ratio)

    def unlinked(self, value: float) -> float:
        return value if self.link == "identity" else math.log(value)

    def mean(self, values: Sequence[float]) -> float:
        """Return the unweighted mean of values; that of an exponential is the exponential of the mean."""
        mean = self.linked(math.fsum(map(self.unlinked, values)) / len(values))
        return math.inf if mean is None else mean

    def number(self, value: float, sign: str = "") -> str:
        """Format a value or difference without its unit: `-3.98` for a fraction of -0.0398."""
        return f"{100 * value:{sign}.2f}" if self.unit == "fraction" else f"{value:{sign}.4f}"

    def interval(self, low: float, high: float, sign: str = "+") -> str:
        """Format an interval without its unit: `[-10.63, +2.55]`; `sign` as for `number`."""
        return f"[{self.number(low, sign)}, {self.number(high, sign)}]"

    def change(
        self, value: float, low: float | None = None, high: float | None = None, sign: str = "+"
    ) -> str:
        """Format a change with its interval, if any, and unit: `-3.98 [-10.63, +2.55] points`."""
        bounds = "" if low is None or high is None else f" {self.interval(low, high, sign)}"
        return f"{self.number(value, sign)}{bounds} {self.change_unit}"

    def size(self, size: float) -> str:
        """Format a margin as configured: `1 point` or `0.02 nats per token`."""
        if self.unit != "fraction":
            return f"{size:.4g} {self.unit}"
        points = f"{100 * size:.4g}"
        return f"{points} point{'' if points == '1' else 's'}"

    def level(self, value: float) -> str:
        """Format a value without its unit, a fraction as a percentage: `43.20 %`, or `2.7183`."""
        return f"{self.number(value)}{' %' if self.unit == 'fraction' else ''}"
