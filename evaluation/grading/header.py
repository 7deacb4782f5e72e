"""The first keys of every tier file: its checkpoint, its protocol, and the cost of scoring."""

from collections.abc import Iterable, Mapping
from typing import Any

from evaluation.checkpoints.inspect import TRAINED
from evaluation.checkpoints.subjects import Subject
from evaluation.checkpoints.training import consumed_tokens, metadata_state
from evaluation.settings.tiers import TIERS


def header(
    subject: Subject,
    tier: str,
    about: Mapping[str, Any],
    summaries: Iterable[Mapping[str, Any]],
    items: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the first keys of a tier file, in their order.

    Args:
        items: Items requested, used and left out, as `add_up` returns them.
    """
    summaries = list(summaries)
    seconds = sum(summary["seconds"] for summary in summaries)
    tokens = sum(summary["tokens_processed"] for summary in summaries)
    return {
        **origin(subject, about),
        "protocol": TIERS[tier].protocol,
        "packages": _packages(summaries),
        "device": about["device"],
        "gpu": " and ".join(_of_all(summaries, "gpu")) or None,
        **({"layers": layers} if (layers := _of_all(summaries, "layers")) else {}),
        "row_tokens": _of_all(summaries, "row_tokens"),
        "dtype": about["dtype"],
        "seconds": round(seconds, 3),
        "tokens_per_second": round(tokens / seconds, 1) if seconds else None,
        "items": items,
    }


def origin(subject: Subject, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that identify the checkpoint of a tier file, with which it begins."""
    return {
        "stage": subject.plan.name,
        "step": subject.step,
        "role": subject.role,
        "checkpoint": about["checkpoint"],
        "checkpoint_identity": about["identity"],
        "tokenizer": about["tokenizer"],
        "sequence_length": about["sequence_length"],
        **{key: about[key] for key in TRAINED if about.get(key) is not None},
        "consumed_tokens": _tokens_seen(subject, about),
    }


def _tokens_seen(subject: Subject, about: Mapping[str, Any]) -> int | None:
    """Return the tokens from the checkpoint itself, or from the job's record where it was deleted."""
    if metadata_state(subject.checkpoint):
        return consumed_tokens(subject.checkpoint)
    found: int | None = about.get("consumed_tokens")
    return found


def _packages(summaries: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the package versions of all scores, which may be older than those installed now."""
    versions: dict[str, set[str]] = {}
    for summary in summaries:
        for package, version in summary["packages"].items():
            versions.setdefault(package, set()).add(version)
    return {package: sorted(found) for package, found in sorted(versions.items())}


def _of_all(summaries: Iterable[Mapping[str, Any]], key: str) -> list[Any]:
    """Return the distinct values of a key over all scores; some scores may lack it."""
    return sorted({summary[key] for summary in summaries if summary.get(key) is not None})


def add_up(counts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the items of a tier: requested, used and left out, the last by reason."""
    counts, left_out = list(counts), dict[str, int]()
    for count in counts:
        for reason, number in count["left_out"].items():
            left_out[reason] = left_out.get(reason, 0) + number
    return {
        "asked": sum(count["asked"] for count in counts),
        "used": sum(count["used"] for count in counts),
        "left_out": left_out,
    }
