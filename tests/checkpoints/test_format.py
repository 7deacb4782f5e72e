"""What a folder is taken for, when its identity changes, and how many tokens its training had seen."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from evaluation.checkpoints.training import METADATA, consumed_tokens
from tests.checkpoints.damage import training
from tests.conftest import ROOT
from tests.histories.warm import run_python, well


def test_reading_the_format_imports_no_torch() -> None:
    code = (
        "import sys, evaluation.checkpoints.format, evaluation.checkpoints.subjects, "
        "evaluation.checkpoints.completeness\n"
        "print([name for name in ('torch', 'transformers', 'datasets') if name in sys.modules])"
    )
    done = well(run_python(["-c", code], ROOT, cold=True))
    assert done.stdout.strip() == "[]"


STAGES = [
    {"consumed_train_samples": 20, "sequence_length": 32},
    {"consumed_train_samples": 5, "sequence_length": 64},
]

CASES: list[tuple[dict[str, Any], int | None]] = [
    ({"consumed_tokens_total": 640, "data_stages": STAGES}, 640),
    ({"consumed_train_samples": 25, "data_stages": STAGES}, 960),
    ({"consumed_train_samples": 25}, 800),
    ({"consumed_tokens_total": 0, "last_train_step": 0}, 0),
    ({"consumed_tokens_total": 0, "last_train_step": 10}, None),  # imported
    ({"consumed_tokens_total": True, "consumed_train_samples": -1}, None),
    ({"consumed_tokens_total": None, "data_stages": [*STAGES, {}]}, None),
    ({}, None),
]


@pytest.mark.parametrize(("metas", "expected"), CASES)
def test_every_version(tmp_path: Path, metas: dict[str, Any], expected: int | None) -> None:
    training(tmp_path, tokens={"sequence_length": 32})
    (tmp_path / METADATA).write_text(json.dumps({"version": "1.5", "metas": metas}))
    assert consumed_tokens(tmp_path) == expected


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"metas": 1}', b'{"a": 1, "a": 2}'])
def test_what_cannot_be_read_stops_nothing(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert consumed_tokens(tmp_path) is None
    assert caplog.messages == []
    (tmp_path / METADATA).write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert consumed_tokens(tmp_path) is None
    assert (METADATA in caplog.text) == (content != b'{"metas": 1}')
