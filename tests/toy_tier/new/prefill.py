"""Books of riddles as tokens: one line a riddle."""

import json

from evaluation.files import write_jsonl
from evaluation.fingerprints import fingerprint
from evaluation.prefill.definitions import saved_description
from evaluation.prefill.entries import check_files, is_current, new_entry, read_meta, write_meta
from evaluation.prefill.sources import locate
from evaluation.prefill.states import Sources

RIDDLES = "riddles.jsonl"


class Book:
    """A book as its scorer takes it."""

    def __init__(self, riddles, meta):
        self.riddles, self.meta = riddles, meta


def define(plan, name, tokenizer):
    item = plan.suite.riddles[name].definition
    return fingerprint(["riddles-1", item, saved_description(tokenizer), plan.sequence_length])


def origins(plan, name):
    return [locate(plan.suite.riddles[name], plan.config.mirrors)]


def make(plan, name):
    from evaluation.prefill.tokenizers import fetch_tokenizer, stage_tokenizer

    about, (origin,) = fetch_tokenizer(plan), origins(plan, name)
    definition, folder = define(plan, name, about), plan.cache_folder("toy", name)
    sources = Sources(plan, [origin])
    if is_current(folder, definition, sources.are_as):
        return
    tokenizer = stage_tokenizer(plan)
    rows = [
        {"id": f"{name}/{number}", "tokens": tokenizer.encode([row["riddle"], row["answer"]])}
        for number, row in enumerate(origin.rows())
    ]
    with new_entry(folder) as building:
        write_jsonl(building / RIDDLES, rows)
        counts = {"asked": len(rows), "used": len(rows), "left_out": {}}
        meta = {
            "definition": definition,
            "items": counts,
            "vocab_size_needed": tokenizer.rows,
            "source": sources.describe(),
        }
        write_meta(building, meta, [RIDDLES])


def read(folder):
    meta = read_meta(folder)
    check_files(folder, meta, (RIDDLES,))
    lines = (folder / RIDDLES).read_text(encoding="utf-8").splitlines()
    return Book([json.loads(line) for line in lines], meta)
