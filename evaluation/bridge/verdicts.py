"""Whether a step does what its stage is for.

An aim is decided on the overall delta of its items (Tier4: on `all_checks_pass_rate`), turned so
that a gain is positive, with its 95 % interval [low, high]:

    improve by m    met: low > m           not met: high <= m      else undecided
    keep within m   met: low >= -m         not met: high < -m      else undecided

`keep` is a test of non-inferiority. A regression is an item that is significantly worse: by more than
the margin of a `keep`, at all for an `improve`; tested at one side of 0.025 with Holm's correction
over the aim's items. A regression makes a `keep` not met, since a mean may hide it; beside an
`improve` it is listed, as gains elsewhere may be worth it.

A step's verdict is the conjunction of its aims. Each must be met on its own, which needs no further
correction: claiming all of them wrongly is no likelier than claiming the likeliest one wrongly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.bridge.deltas import OVERALL, Delta, headline_delta, macro
from evaluation.bridge.statistics import ALPHA, holm, p_beyond
from evaluation.errors import BridgeError
from evaluation.settings.config import Aim
from evaluation.settings.tiers import TIERS, TierName

Answer = Literal["met", "not met", "undecided"]


@dataclass(frozen=True, kw_only=True)
class AimVerdict:
    """How a step stands to one aim; `delta`, `low` and `high` are of the headline metric."""

    tier: TierName
    want: Literal["improve", "keep"]
    group: str | None
    margin: float
    verdict: Answer
    metric: str
    items: tuple[str, ...]
    value: float
    bridge_value: float
    delta: float
    low: float | None
    high: float | None
    mde: float | None
    regressions: tuple[str, ...]
    why: str

    @property
    def gain(self) -> float:
        tier = TIERS[self.tier]
        return self.delta if tier.metric(tier.headline).higher_is_better else -self.delta

    @property
    def label(self) -> str:
        return f"{self.tier}{f' {self.group}' if self.group else ''} {self.want}s"


def judge_step(objective: Sequence[Aim], deltas: Sequence[Delta], stage: str) -> list[AimVerdict]:
    """One verdict for each aim; raises BridgeError for an aim at what was not scored."""
    return [
        judge_aim(aim, deltas, f"stages.{stage}.objective.{number}")
        for number, aim in enumerate(objective)
    ]


def conjunction(verdicts: Sequence[Answer]) -> Answer | None:
    """Not met if one is not; met if all are; None if there is nothing to judge."""
    if not verdicts:
        return None
    if "not met" in verdicts:
        return "not met"
    return "met" if set(verdicts) == {"met"} else "undecided"


def judge_aim(aim: Aim, deltas: Sequence[Delta], key: str) -> AimVerdict:
    """The verdict on one aim; `key` is its place in the configuration."""
    parts, headline = aimed_at(aim, deltas, key)
    low, high = headline.estimate.low, headline.estimate.high
    gains = (None, None) if low is None or high is None else _gain(headline.sign, low, high)
    regressions = _regressions(aim, parts)
    answer = _answer(aim, *gains)
    if regressions and aim.want == "keep":
        answer = "not met"
    return AimVerdict(
        tier=aim.tier,
        want=aim.want,
        group=aim.group,
        margin=aim.margin,
        verdict=answer,
        metric=headline.metric,
        items=tuple(dict.fromkeys(part.item for part in parts)),
        value=headline.value,
        bridge_value=headline.bridge_value,
        delta=headline.estimate.value,
        low=low,
        high=high,
        mde=headline.estimate.mde,
        regressions=regressions,
        why=_why(aim, headline, answer, regressions),
    )


def aimed_at(aim: Aim, deltas: Sequence[Delta], key: str) -> tuple[list[Delta], Delta]:
    """The deltas of an aim's items, and the one it is decided on."""
    metric = headline_delta(aim.tier)
    if TIERS[aim.tier].rates:
        item = aim.group or OVERALL
        own = [delta for delta in deltas if delta.tier == aim.tier and delta.item == item]
        headline = next((delta for delta in own if delta.metric == metric), None)
    else:
        own = [
            delta
            for delta in deltas
            if delta.tier == aim.tier
            and delta.item != OVERALL
            and delta.metric == metric
            and aim.group in (None, delta.group)
        ]
        headline = macro(own, item=aim.group or OVERALL) if own else None
    if headline is None:
        group = f" of the group {aim.group!r}" if aim.group else ""
        raise BridgeError(
            f"{key}: it aims at {aim.tier}{group}, of which the stage's suites hold nothing; correct "
            "the aim or the suites"
        )
    return own, headline


def _gain(sign: int, low: float, high: float) -> tuple[float, float]:
    return (low, high) if sign > 0 else (-high, -low)


def _answer(aim: Aim, low: float | None, high: float | None) -> Answer:
    if low is None or high is None:
        return "undecided"
    if aim.want == "improve":
        return "met" if low > aim.margin else "not met" if high <= aim.margin else "undecided"
    return "met" if low >= -aim.margin else "not met" if high < -aim.margin else "undecided"


def _regressions(aim: Aim, parts: Sequence[Delta]) -> tuple[str, ...]:
    allowed = aim.margin if aim.want == "keep" else 0.0
    names = [_name(part) for part in parts]
    p_values = {
        name: p_beyond(part.estimate, -allowed * part.sign, above=part.sign < 0)
        for name, part in zip(names, parts, strict=True)
    }
    adjusted = holm(p_values)
    return tuple(name for name in names if (p := adjusted[name]) is not None and p < ALPHA / 2)


def _name(delta: Delta) -> str:
    return delta.metric.removeprefix("delta_") if TIERS[delta.tier].rates else delta.item


def _why(aim: Aim, headline: Delta, answer: Answer, regressions: tuple[str, ...]) -> str:
    estimate = headline.estimate
    if estimate.low is None or estimate.high is None:
        return f"{headline.metric} {estimate.value:+.4f}; {estimate.note}"
    bound = f"margin {aim.margin:g}"
    text = f"{headline.metric} {estimate.value:+.4f} [{estimate.low:+.4f}, {estimate.high:+.4f}]"
    text = f"{text}, {bound}"
    if regressions:
        text += f"; significantly worse: {', '.join(regressions)}"
    if answer == "undecided" and estimate.mde is not None:
        text += f"; only {estimate.mde:.4f} or more would have been seen"
    return text
