"""Record the caches and checkpoint files that scores and results are made from; compare them later."""

import os
from typing import Any

from evaluation.checkpoints.state import is_left_of, recorded_state
from evaluation.checkpoints.training import metadata_state
from evaluation.dependencies.caches import (
    CacheEntry,
    CacheStates,
    check_current,
    definition_of,
    graded_entries,
    stage_entries,
)
from evaluation.dependencies.keys import Records
from evaluation.dependencies.places import Place
from evaluation.dependencies.view import View
from evaluation.files import fingerprint, unordered
from evaluation.prefill.caches import DOCUMENTS
from evaluation.prefill.entries import META
from evaluation.records import Record


def score_inputs(place: Place) -> dict[str, Any]:
    """Return the state of caches, tokenizer and checkpoint for a record of scores; raise CacheError."""
    states = CacheStates()
    entries = stage_entries(place.plan)
    caches = {
        entry.place: _describe_entry(entry, check_current(states, entry)) for entry in entries
    }
    tokenizer = states.tokenizer(place.plan)
    return {"caches": caches, "tokenizer": tokenizer, **recorded_state(place.subject.checkpoint)}


def are_scores_of(record: Record, records: Records, place: Place, view: View) -> bool:
    """Return whether scores were made from the present caches and checkpoint.

    The checkpoint may be deleted by now, in whole or in part. But if its path is a link that now leads
    elsewhere, the scores belong to another folder.
    """
    del records
    about, checkpoint = record.about, place.subject.checkpoint
    used, tokenizer = about.get("caches", {}), about.get("tokenizer")
    entries = stage_entries(place.plan)
    if not all(_agrees(view.caches, entry, used.get(entry.place), tokenizer) for entry in entries):
        return False
    if state := view.state(checkpoint):
        return is_left_of(state, about.get("checkpoint_state"))
    return bool(about.get("location") == os.path.realpath(checkpoint))


def result_inputs(place: Place) -> dict[str, Any]:
    """Return the state of documents (by cache) and of the checkpoint's metadata for a record of results."""
    states, metadata = CacheStates(), metadata_state(place.subject.checkpoint)
    entries = {entry.place: states.record(entry) for entry in graded_entries(place.plan)}
    documents = {
        name: _describe_documents(entry) for name, entry in entries.items() if entry is not None
    }
    return {"documents": documents, "metadata": metadata}


def are_results_of(record: Record, records: Records, place: Place, view: View) -> bool:
    """Return whether results were made from these documents and the checkpoint's present metadata.

    Deleted metadata does not count as a change.
    """
    (score,) = records
    used, tokenizer = record.about.get("documents", {}), score and score.about.get("tokenizer")
    if not all(
        _agrees(view.caches, entry, used.get(entry.place), tokenizer, graded=True)
        for entry in graded_entries(place.plan)
    ):
        return False
    counted = metadata_state(place.subject.checkpoint)
    return not counted or counted == record.about.get("metadata")


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
