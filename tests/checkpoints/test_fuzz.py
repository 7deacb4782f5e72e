"""A fixed set of the fuzzer's cases; `python -m tests.checkpoints.fuzz 4000` runs more."""

from pathlib import Path

import pytest

from evaluation.checkpoints import completeness
from tests.checkpoints.fuzz import run
from tests.checkpoints.fuzz_targets import make_targets


@pytest.mark.filterwarnings("ignore")
def test_damage_gives_the_right_answer_or_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completeness, "FRESH_SECONDS", 0.0)
    counts, findings = run(make_targets(tmp_path), 120, seed=0)
    assert findings == []
    assert counts["one sentence"] > 70
    assert counts["of these compared"] > 1
