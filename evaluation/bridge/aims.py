"""Which deltas an aim is about, and the one that it is decided on."""

from collections.abc import Sequence

from evaluation.bridge.deltas import OVERALL, Delta, macro
from evaluation.errors import BridgeError
from evaluation.settings.config import Aim
from evaluation.settings.tiers import TIERS


def aim_delta(aim: Aim) -> str:
    """The name of the deltas that decide an aim."""
    return f"delta_{aim.decided_on.name}"


def aimed_at(aim: Aim, deltas: Sequence[Delta], key: str) -> tuple[list[Delta], Delta]:
    """The deltas of an aim's items, and the one it is decided on; `key` is its place.

    Raises:
        BridgeError: nothing of it was scored.
    """
    own, headline = _known(aim, deltas)
    if headline is None:
        group = f" of the group {aim.group!r}" if aim.group else ""
        if aim.metric is not None and _known(aim.model_copy(update={"metric": None}), deltas)[1]:
            raise BridgeError(
                f"{key}: it aims at {aim.metric} of {aim.tier}{group}, which needs each candidate's "
                "log-probability; score both sides with per-item tables, or leave `metric` out"
            )
        raise BridgeError(
            f"{key}: it aims at {aim.tier}{group}, of which the stage's suites hold nothing; correct "
            "the aim or the suites"
        )
    return own, headline


def _known(aim: Aim, deltas: Sequence[Delta]) -> tuple[list[Delta], Delta | None]:
    metric, tier = aim_delta(aim), TIERS[aim.tier]
    if tier.rates:
        item = aim.group or OVERALL
        own = [delta for delta in deltas if delta.tier == aim.tier and delta.item == item]
        return own, next((delta for delta in own if delta.metric == metric), None)
    own = [
        delta
        for delta in deltas
        if delta.tier == aim.tier
        and delta.item != OVERALL
        and delta.metric == metric
        and aim.group in (None, delta.group)
    ]
    return own, macro(own, item=aim.group or OVERALL) if own else None
