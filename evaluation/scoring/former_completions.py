"""Read completions anew from their token ids where earlier versions of this program stored them.

Some stored the same answers under an earlier protocol. Until now, an answer was decoded without its prompt. So tokenizers whose text depends on what stands before
lost its first blank, or wrote bytes as `<0x0A>`. The ids are right, and need not be generated again.
"""

import logging
from collections.abc import Iterable, Mapping, Set
from typing import Any

import pyarrow as pa

from evaluation.prefill.caches import Prompt
from evaluation.scoring.answers import Stopping
from evaluation.scoring.session import Job
from evaluation.scoring.stored_completions import COMPLETIONS, STOP, prompt_key, until_stopped
from evaluation.settings.tiers import TIERS
from evaluation.store import StoredScore

log = logging.getLogger(__name__)

TEXT = "text"
"""Part of the key of completions whose text depends on their prompts."""


def text_key(tokenizer: Mapping[str, Any]) -> dict[str, str]:
    """Return the part of a key that says how ids are read; none where no version read them otherwise."""
    return {} if tokenizer["decodes_anywhere"] else {TEXT: "after the prompt"}


def read_anew(
    job: Job,
    item: str,
    key: Mapping[str, Any],
    prompts: Iterable[Prompt],
    lacking: Set[str],
    stopping: Stopping,
) -> bool:
    """Store completions under a former key again, read as they are now; return whether there were any.

    Args:
        lacking: The `sample_key` of each completion that is not stored under the key.
    """
    wanted = set(lacking)
    of_prompt = {prompt_key(prompt): prompt for prompt in prompts}
    for former in _former_keys(job, key):
        prefix = job.store.prefix(item, former)
        rows, _ = job.store.find_rows(prefix, wanted, lambda row, summary: row)
        anew = [new for row in rows.values() if (new := _anew(row, of_prompt, stopping))]
        if anew:
            log.info("%s: %d completions are read anew from their ids", item, len(anew))
            table = pa.Table.from_pylist(anew, schema=COMPLETIONS)
            summary = {"seconds": 0.0, "tokens_processed": 0, STOP: list(stopping.strings)}
            job.add(item, key, job.stamped(StoredScore(table, {}), summary))
            wanted -= {row["key"] for row in anew}
    return len(wanted) < len(lacking)


def _former_keys(job: Job, key: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the keys under which earlier versions stored the same ids."""
    fingerprints = [key["tokenizer"], *job.tokenizer["formerly"]]
    tier = next(tier for tier in TIERS.values() if tier.scoring == key["protocol"])
    plain = {name: value for name, value in key.items() if name != TEXT}
    formers = [
        {**plain, "protocol": protocol, "tokenizer": fingerprint}
        for protocol in tier.same_answers or [tier.protocol]
        for fingerprint in fingerprints
    ]
    return [former for former in formers if former != key]


def _anew(
    row: Mapping[str, Any], prompts: Mapping[str, Prompt], stopping: Stopping
) -> dict[str, Any] | None:
    """Return a row with its text read anew; None if it ended at a stop string that it does not have."""
    prompt = prompts[row["key"].rpartition("-")[0]]
    count = until_stopped(stopping, prompt.tokens)(row["tokens"])
    tokens = list(row["tokens"][:count])
    answer = stopping.answer(prompt.tokens, tokens, row["stop_reason"])
    if row["stop_reason"] == "stop_string" and answer.text == answer.raw:
        return None
    changed = {"text": answer.raw, "stop_reason": answer.stop_reason}
    return {**row, **changed, "completion_tokens": count, "tokens": tokens}
