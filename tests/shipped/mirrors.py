"""Mirrors of every data set that a shipped suite reads: a few invented rows in the hub's schema."""

import base64
import json
import pickle
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

TEXT = (
    "The harbour of the town lies between two hills, and boats come in at noon.",
    "Whoever walks along the quay sees nets, ropes and baskets of {number} fish.",
    "def catch(boats):\n    return [boat.fish for boat in boats if boat.fish > {number}]",
    "If a boat carries {number} baskets and sells three, it keeps the others for the market.",
)
DOCUMENTS = 130
"""Documents of a text: more than one block of 8,192 tokens."""

SUBJECTS = "cais/mmlu"
PACKED = "PACKED "


def write_mirrors(root: Path) -> Path:
    """Write all data sets below a folder, which can be the mirror `*` of a configuration."""
    for name in ("rows_ranked", "rows_generated"):
        for place, rows in _table(name).items():
            _write(root / f"{place}.jsonl", map(_packed, rows))
    for place, about in _table("texts").items():
        _write(root / f"{place}.jsonl", _documents(**about))
    for subject in _subjects():
        _write(root / SUBJECTS / subject / "test.jsonl", [_question(subject, 0)])
        _write(
            root / SUBJECTS / subject / "dev.jsonl", [_question(subject, n) for n in range(1, 6)]
        )
    return root


def _table(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text())
    return content


def _write(path: Path, rows: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _packed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its texts after PACKED as LiveCodeBench packs its private tests."""
    return {
        name: pack(value.removeprefix(PACKED))
        if isinstance(value, str) and value.startswith(PACKED)
        else value
        for name, value in row.items()
    }


def pack(text: str) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(text))).decode()


def _documents(fields: Mapping[str, Any], skipped: int = 0) -> Iterator[dict[str, Any]]:
    yield from ({**fields, **_texts(fields, "Skipped.")} for _ in range(skipped))
    for number in range(DOCUMENTS):
        yield {**fields, **_texts(fields, " ".join(TEXT).replace("{number}", str(number)))}


def _texts(fields: Mapping[str, Any], text: str) -> dict[str, str]:
    return {name: text for name, value in fields.items() if value == "text"}


def _subjects() -> list[str]:
    suites = Path(__file__).parents[2] / "task_suites"
    suite = yaml.safe_load((suites / "stage3_cf_core.yaml").read_text())
    subjects: list[str] = suite["tasks"]["mmlu"]["configs"]
    return subjects


def _question(subject: str, number: int) -> dict[str, Any]:
    return {
        "question": f"What is {number} + 2 in {subject}?",
        "subject": subject,
        "choices": [str(number + more) for more in (1, 2, 3, 4)],
        "answer": 1,
    }
