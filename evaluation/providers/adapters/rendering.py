"""Functions that adapters share for rendering: a task's section, stop strings and documents."""

import json
from collections.abc import Mapping
from pathlib import Path

from evaluation.providers.adapters.contract import Line, RefusedTask


def check_section(name: str, kind: str, *, ranks: bool) -> None:
    """Refuse a task that was requested under the wrong section of a suite.

    Args:
        kind: Kind that was requested: `choices` or `generative`.
        ranks: Whether the task ranks choices.

    Raises:
        RefusedTask: The kind is not the task's.
    """
    if ranks and kind != "choices":
        raise RefusedTask(f"{name} ranks choices; put it under `tasks`")
    if not ranks and kind == "choices":
        raise RefusedTask(f"{name} ranks no choices; put it under `generation_tasks`")


def common_stop(stops: Mapping[str, list[str]]) -> list[str]:
    """Return the stop strings that all parts of a task share.

    Raises:
        RefusedTask: They differ.
    """
    if len({json.dumps(stop) for stop in stops.values()}) > 1:
        raise RefusedTask("its parts have different stop strings; name each part as a task")
    return next(iter(stops.values()))


def plain_fields(row: Mapping[str, object]) -> Line:
    """Return the texts and whole numbers of a row and its `metadata`, which JSON can hold."""
    fields = {name: value for name, value in row.items() if isinstance(value, str | int)}
    more = row.get("metadata")
    return fields | ({"metadata": plain_fields(more)} if isinstance(more, dict) else {})


def write_documents(folder: Path, documents: list[Line]) -> None:
    """Write `documents.jsonl`.

    Raises:
        RefusedTask: JSON cannot hold a document.
    """
    with open(folder / "documents.jsonl", "w", encoding="utf-8") as file:
        for line in documents:
            try:
                file.write(json.dumps(line, allow_nan=False) + "\n")
            except (TypeError, ValueError) as error:
                raise RefusedTask(f"JSON cannot hold its documents ({error})") from None
