"""Record the caches and checkpoint files that scores and results are made from; compare them later."""

from collections.abc import Mapping
from typing import Any

from evaluation.checkpoints.locations import real_location
from evaluation.checkpoints.state import State, is_left_of, recorded_state
from evaluation.checkpoints.subjects import Subject
from evaluation.checkpoints.training import metadata_state
from evaluation.dependencies.caches import (
    CacheEntry,
    CacheStates,
    check_current,
    definition_of,
    stage_entries,
    tier_entries,
)
from evaluation.fingerprints import fingerprint, unordered
from evaluation.prefill.caches import DOCUMENTS
from evaluation.prefill.entries import META
from evaluation.records import Record


def score_inputs(subject: Subject) -> dict[str, Any]:
    """Return the state of caches and checkpoint for a record of scores.

    Args:
        subject: The checkpoint that is scored.

    Returns:
        Caches by place, the tokenizer that defines them, and the checkpoint's state and location.

    Raises:
        CacheError: A cache is not current.
    """
    states = CacheStates()
    entries = stage_entries(subject.plan)
    caches = {one.place: _describe_entry(one, check_current(states, one)) for one in entries}
    tokenizer = states.tokenizer(subject.plan)
    return {"caches": caches, "tokenizer": tokenizer, **recorded_state(subject.checkpoint)}


def are_scores_of(
    about: Mapping[str, Any], subject: Subject, caches: CacheStates, state: State
) -> bool:
    """Return whether scores were made from these caches and this checkpoint.

    The checkpoint may be deleted by now, in whole or in part. But if its path is a link that now leads
    elsewhere, the scores belong to another folder.

    Args:
        caches: States of caches, read once.
        state: State of the checkpoint's files now; empty if it is deleted.

    Returns:
        Whether nothing has changed since, except for deletions.
    """
    used, tokenizer = about.get("caches", {}), about.get("tokenizer")
    entries = stage_entries(subject.plan)
    if not all(_agrees(caches, one, used.get(one.place), tokenizer) for one in entries):
        return False
    if state:
        return is_left_of(state, about.get("checkpoint_state"))
    return bool(about.get("location") == real_location(subject.checkpoint))


def result_inputs(subject: Subject, metadata: str | None) -> dict[str, Any]:
    """Return the state of documents and of the checkpoint's metadata for a record of results.

    Args:
        metadata: The metadata's checksum when it was read; None if there was none.

    Returns:
        Documents by the place of their cache, and the checksum.
    """
    states = CacheStates()
    found = {one.place: states.record(one) for one in tier_entries(subject.plan) if one.is_graded}
    documents = {place: _describe_documents(one) for place, one in found.items() if one is not None}
    return {"documents": documents, "metadata": metadata}


def are_results_of(
    about: Mapping[str, Any], scored: Mapping[str, Any], subject: Subject, caches: CacheStates
) -> bool:
    """Return whether results were made from these documents and the checkpoint's present metadata.

    Args:
        scored: The inputs in the scores' record, which name the tokenizer.
        caches: States of caches, read once.

    Returns:
        Whether nothing has changed since; deleted metadata does not count as a change.
    """
    used, tokenizer = about.get("documents", {}), scored.get("tokenizer")
    entries = [one for one in tier_entries(subject.plan) if one.is_graded]
    if not all(
        _agrees(caches, one, used.get(one.place), tokenizer, graded=True) for one in entries
    ):
        return False
    counted = metadata_state(subject.checkpoint)
    return not counted or counted == about.get("metadata")


def _agrees(
    caches: CacheStates, entry: CacheEntry, used: Any, tokenizer: Any, *, graded: bool = False
) -> bool:
    """Return whether an entry has not changed since it was used, by the present configuration.

    If the cache itself is missing or damaged, its definition and source data decide, as the same data
    give the same cache. `used` is the earlier result of `_describe_entry`, or of `_describe_documents` if
    `graded`; `tokenizer` counts if the saved one is missing by now.
    """
    if not isinstance(used, dict):
        return False
    record = caches.record(entry)
    if record is not None and caches.state(entry) == "current":
        now = _describe_documents(record) if graded else _describe_entry(entry, record)
        return all(used.get(name) == now[name] for name in ("definition", "content"))
    if "state" in used and caches.have_sources_changed(entry, used["state"]):
        return False
    define = None if graded else entry.define_asked
    wanted = definition_of(entry, caches.tokenizer(entry.plan) or tokenizer, define)
    return wanted is None or used.get("definition") == wanted


def _describe_entry(entry: CacheEntry, record: Record) -> dict[str, Any]:
    """Return a cache's description for scores: definition and content that they depend on, data's state."""
    asked = record.about.get("asked") if entry.define_asked else None
    others = (META,) if asked is None else (META, DOCUMENTS)
    data = {name: state.checksum for name, state in record.files.items() if name not in others}
    content = asked and record.about.get("content")
    found = {"definition": asked or record.key, "content": content or fingerprint(unordered(data))}
    return found | {"state": record.about.get("state")}


def _describe_documents(record: Record) -> dict[str, Any]:
    """Return the description of a cache's documents, for results that were graded with them."""
    documents = record.files.get(DOCUMENTS)
    content = documents.checksum if documents else ""
    return {"definition": record.key, "content": content, "state": record.about.get("state")}
