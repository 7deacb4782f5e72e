"""Completions that another engine wrote, stored as a checkpoint's own; nothing is generated for their task.

`<results>/scores/<checkpoint identity>/imported.json` has, by task, the engine, the file and its checksum,
which is part of the key in the score store: a later import takes the place of an earlier one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.errors import ScoringError
from evaluation.prefill.caches import PromptCache
from evaluation.results.files import parse_json
from evaluation.scoring.stored_completions import prompt_key, sample_key, stored_completions
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore

IMPORTED = "imported.json"
Import = Mapping[str, Any]
"""An entry of `imported.json`: `engine`, `file` and `checksum`."""


def imports_of(store: ScoreStore) -> dict[str, Import]:
    """Return what was imported for a checkpoint, by task; raise ResultsError for a damaged file."""
    path = store.folder / IMPORTED
    return parse_json(path, path.read_bytes(), "import again") if path.exists() else {}


def import_key(name: str, origin: Import) -> tuple[str, dict[str, Any]]:
    """Return the item of imported completions in the store, and its key."""
    key = {"engine": origin["engine"], "imported": origin["checksum"]}
    return f"completions-{name}", {"protocol": TIERS["tier5"].scoring, **key}


def imported_entry(
    store: ScoreStore, name: str, origin: Import, cache: PromptCache, n: int, stops: Sequence[str]
) -> tuple[str, list[str], dict[str, Any]]:
    """Return prefix and names of a task's imported completions, and what results say of the engine.

    Raises ScoringError where a completion of a prompt is missing, as the prompts have changed since.
    """
    prefix = store.prefix(*import_key(name, origin))
    keys = {sample_key(prompt_key(prompt), i) for prompt in cache.prompts for i in range(n)}
    stored, used = stored_completions(store, prefix, keys, stops)
    if lacking := len(keys - stored.keys()):
        raise ScoringError(
            f"{name}: prompts or stop strings have changed since {origin['file']} was imported, so that "
            f"{lacking} of {len(keys)} completions are missing; import them again, or remove "
            f"{store.folder / IMPORTED}, so that all are generated"
        )
    return prefix, list(used), {"name": origin["engine"], "imported": origin["file"]}
