"""Completions that another engine wrote, stored as a checkpoint's own; nothing is generated for their task.

`<results>/scores/<checkpoint identity>/imported.json` says, by task, which engine wrote them, and from
which file they come. They are in the score store like others, under a key that names that file's
checksum, so a later import takes the place of an earlier one.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluation.errors import ResultsError, ScoringError
from evaluation.files import write_json
from evaluation.fingerprints import fingerprint
from evaluation.prefill.caches import Prompt, PromptCache
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.scoring.completion_files import CompletionFile, CompletionLine
from evaluation.scoring.stored_completions import (
    COMPLETIONS,
    STOP,
    prompt_key,
    sample_key,
    stored_completions,
)
from evaluation.settings.generation import CompletionTask
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore, StoredScore

IMPORTED = "imported.json"

Import = Mapping[str, Any]
"""An entry of `imported.json`: `engine`, `version`, `file` and `checksum`."""


def imports_of(store: ScoreStore) -> dict[str, Import]:
    """Return what was imported for a checkpoint, by task; raise ResultsError for a damaged file."""
    path = store.folder / IMPORTED
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {str(task): dict(entry) for task, entry in content.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError) as error:
        raise ResultsError(f"{path}: damaged ({error}); remove it, and import again") from None


def forget_import(store: ScoreStore, task: str) -> bool:
    """Let the built-in engine complete a task again; return whether something was imported for it."""
    imports = imports_of(store)
    is_there = imports.pop(task, None) is not None
    if is_there:
        write_json(store.folder / IMPORTED, imports)
    return is_there


def import_completions(
    plan: StagePlan,
    store: ScoreStore,
    name: str,
    task: CompletionTask,
    cache: PromptCache,
    given: CompletionFile,
    origin: Import,
) -> int:
    """Store completions of a file as a checkpoint's, and return how many.

    Args:
        origin: The entry of `imported.json`.

    Raises:
        ScoringError: A completion of a prompt is missing, or there are more than the task asks for.
    """
    _check_all(name, task, cache, given.lines)
    tokens = stage_tokenizer(plan).encode([line.completion for line in given.lines])
    prompts = {prompt.id: prompt for prompt in cache.prompts}
    rows = [
        _row(prompts[line.id], line, ids) for line, ids in zip(given.lines, tokens, strict=True)
    ]
    summary = {
        "seconds": 0.0,
        "tokens_processed": 0,
        "packages": {},
        STOP: [*task.stop, *cache.meta["end_strings"]],
    }
    table = pa.Table.from_pylist(rows, schema=COMPLETIONS)
    store.put_part(f"completions-{name}", _key(origin), StoredScore(table, summary))
    write_json(store.folder / IMPORTED, {**imports_of(store), name: dict(origin)})
    return len(rows)


def imported_entry(
    store: ScoreStore, name: str, origin: Import, cache: PromptCache, n: int, stops: Sequence[str]
) -> tuple[str, list[str], dict[str, Any]]:
    """Return prefix and names of a task's imported completions, and what results say of the engine.

    Raises:
        ScoringError: A completion of a prompt is missing, as the prompts have changed since.
    """
    prefix = store.prefix(f"completions-{name}", _key(origin))
    keys = [sample_key(prompt_key(prompt), i) for prompt in cache.prompts for i in range(n)]
    found, used = stored_completions(store, prefix, keys, stops)
    if lacking := len(set(keys) - found.keys()):
        raise ScoringError(
            f"{name}: {lacking} of {len(set(keys))} completions are not among those imported from "
            f"{origin['file']}, as prompts or stop strings have changed; import them again, or run "
            "`import-completions --forget`, so that they are generated here"
        )
    about = {"name": origin["engine"], "version": origin["version"], "imported": origin["file"]}
    return prefix, list(used), about


def _key(origin: Import) -> dict[str, Any]:
    return {
        "protocol": TIERS["tier5"].scoring,
        "engine": origin["engine"],
        "imported": origin["checksum"],
    }


def _check_all(
    name: str, task: CompletionTask, cache: PromptCache, lines: Sequence[CompletionLine]
) -> None:
    given = {(line.id, line.sample) for line in lines}
    wanted = {(prompt.id, i) for prompt in cache.prompts for i in range(task.sampling.n)}
    if lacking := sorted(wanted - given):
        id, sample = lacking[0]
        raise ScoringError(
            f"{name}: {len(lacking)} of {len(wanted)} completions are missing, such as sample {sample} of "
            f"{id!r}; add them, or lower `limit` or `sampling.n` of the task"
        )
    if more := len(given - wanted):
        raise ScoringError(
            f"{name}: the file has {more} completions more than the {task.sampling.n} that the task asks "
            f"for; set `sampling: {{n: {max(sample for _, sample in given) + 1}}}`"
        )


def _row(prompt: Prompt, line: CompletionLine, tokens: Sequence[int]) -> dict[str, Any]:
    """Return a row of the store; a completion that fills the limit was cut off, if nothing says more."""
    is_full = len(tokens) >= prompt.max_new_tokens
    reason = line.stop_reason or ("length" if is_full else "eos")
    return {
        "key": sample_key(prompt_key(prompt), line.sample),
        "text": line.completion,
        "stop_reason": "eos" if reason == "stop_string" else reason,  # the text is cut already
        "prompt_tokens": len(prompt.tokens),
        "completion_tokens": len(tokens),
        "tokens": list(tokens),
    }


def origin_of_file(
    path: Path, given: CompletionFile, engine: str | None, version: str | None
) -> Import:
    """Return the entry of `imported.json` for a file.

    Args:
        engine: What the user calls the engine; None: what the file's format suggests.
        version: The engine's version, if the user gives it.
    """
    content = [[line.id, line.sample, line.completion, line.stop_reason] for line in given.lines]
    return {
        "engine": engine or given.engine,
        "version": version,
        "file": path.name,
        "checksum": fingerprint(content),
    }
