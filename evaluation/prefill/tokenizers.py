"""A stage's tokenizer: fetched once, checked, and saved with the stage's caches."""

import json
import logging
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import fingerprint, unordered, write_json
from evaluation.prefill.entries import is_current, new_entry, read_meta, write_meta
from evaluation.prefill.tiers import tokenizer_definition, tokenizer_state
from evaluation.settings.plan import StagePlan
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.encoding import bos_ids
from evaluation.tokenizers.files import copy_files
from evaluation.tokenizers.loading import load_tokenizer, local_folder
from evaluation.tokenizers.self_check import REPORT, bos_remark, self_check

log = logging.getLogger(__name__)


def stage_tokenizer(plan: StagePlan) -> LoadedTokenizer:
    """Open the tokenizer that prefill saved for a stage."""
    return load_tokenizer(plan.tokenizer_folder, use_fast=plan.tokenizer.use_fast)


def fetch_tokenizer(plan: StagePlan) -> dict[str, Any]:
    """Fetch a stage's tokenizer unless it is there already; return its meta.json."""
    definition, state = tokenizer_definition(plan), tokenizer_state(plan)
    if not is_current(plan.tokenizer_folder, definition, lambda _: state):
        try:
            _fetch(plan, state)
        except SourceError as error:
            key = plan.tokenizer_key or f"stages.{plan.name}: the tokenizer of its training"
            raise SourceError(f"{key}: {error}") from error
    return read_meta(plan.tokenizer_folder)


def _fetch(plan: StagePlan, state: list[list[Any]] | None) -> None:
    """Copy the tokenizer's files into the cache, and check what jobs will load from there."""
    wanted = plan.tokenizer
    source = local_folder(wanted.name, wanted.revision)
    tokenizer = load_tokenizer(source, use_fast=wanted.use_fast)
    tokenizer.name_or_path = wanted.name
    bos_ids(tokenizer, wanted.prepend_bos)
    with new_entry(plan.tokenizer_folder) as building:
        copy_files(source, building)
        report = self_check(tokenizer, building)
        if remark := bos_remark(tokenizer, wanted.prepend_bos):
            report["remarks"].insert(0, remark)
        write_json(building / REPORT, report)
        meta = {
            "name": wanted.name,
            "fingerprint": _fingerprint(tokenizer),
            "class": type(tokenizer).__name__,
            "prepend_bos": wanted.prepend_bos,
            "vocab_size": len(tokenizer.vocabulary),
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "decodes_anywhere": tokenizer.decodes_anywhere,
            "definition": tokenizer_definition(plan),
            "revision": wanted.revision,
            "chat_template": tokenizer.chat_template,
            "source": {"state": state},
        }
        write_meta(building, meta)


def log_remarks(plan: StagePlan) -> None:
    """Log what the tokenizer's check remarked, such as a BOS that it adds and `prepend_bos` does not."""
    for remark in json.loads((plan.tokenizer_folder / REPORT).read_bytes())["remarks"]:
        log.warning("%s", remark)


def _fingerprint(tokenizer: LoadedTokenizer) -> str:
    """Return the identity of a tokenizer's behaviour on text, wherever it was loaded from.

    It covers vocabulary, merges, normalization, added tokens, BOS and EOS. It does not cover name,
    padding, chat template, or the tokens that the tokenizer would add around a text by itself.
    """
    behaviour = unordered(tokenizer.behaviour())
    return fingerprint([behaviour, tokenizer.bos_token_id, tokenizer.eos_token_id])
