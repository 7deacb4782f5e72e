"""vLLM itself, on the CPU: a real model's answers to the demo's tasks, beside the built-in engine's.

`make vllm` installs it; EVAL_VLLM names the Python of another environment that has it.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.nanotron_writer import import_hf
from evaluation.checkpoints.subjects import step_subject
from evaluation.errors import ScoringError
from evaluation.flow.make import make
from evaluation.flow.targets import COLLECT, SCORE
from evaluation.prefill.tiers import PREFILLS
from evaluation.results.read import read_results
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.store import ScoreStore
from tests.conftest import ROOT
from tests.scoring.vllm.test_vllm import stored

PYTHON = Path(os.environ.get("EVAL_VLLM", ROOT / ".venv-vllm/bin/python"))
KILLED = """\
#!/bin/sh
[ "$1" = -c ] && exec {python} "$@"
{python} "$@" & program=$!
for folder; do :; done
while kill -0 $program && [ "$(wc -l < "$folder/answers.jsonl")" -lt 12 ]; do sleep 0.1; done
kill -9 $program
exit 9
"""
SAMPLES = 8


def tasks() -> dict[str, Any]:
    """The demo's sums: greedy and sampled after solved ones, where a line break ends them; and as a chat."""
    given = yaml.safe_load((ROOT / "demo/suites/chat.yaml").read_text())
    sums: dict[str, Any] = given["generation_tasks"]["sums"]
    sums["files"] = [str(ROOT / file) for file in sums["files"]]
    drawn = {**sums, "sampling": {"temperature": 0.8, "n": SAMPLES, "seed": 3}}
    alone = ("num_fewshot", "fewshot_examples", "answer")
    chat = {key: value for key, value in sums.items() if key not in alone} | {"chat": True}
    return {"sums": sums, "drawn": drawn, "chat": {**chat, "stop": [], "max_new_tokens": 12}}


@pytest.fixture
def folder(smollm2: Path, tmp_path: Path) -> Path:
    if not PYTHON.exists():
        pytest.skip(f"no {PYTHON}: `make vllm` installs it")
    import_hf(smollm2, tmp_path / "ckpts", step=5, sequence_length=256)
    (tmp_path / "suites").mkdir()
    suite = {"generation_tasks": tasks()}
    (tmp_path / "suites" / "answers.yaml").write_text(yaml.safe_dump(suite))
    return tmp_path


def planned(folder: Path, model: Path, python: Path) -> StagePlan:
    stage = {"checkpoints": str(folder / "ckpts"), "steps": [5], "suites": ["answers"]}
    config = {
        "results": str(folder / "results"),
        "cache": str(folder / "cache"),
        "suites": str(folder / "suites"),
        "tokenizer": {"name": str(model)},
        "sequence_length": 256,
        "generation": {"engine": "vllm", "python": str(python), "memory_share": 0.2},
        "stages": {"stage1": stage},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return plan_stages(load_config(folder / "config.yaml"))["stage1"]


def test_real_answers(
    folder: Path,
    smollm2: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed and resumed; samples, stop strings and a chat;"""
    killed = folder / "killed"
    killed.write_text(KILLED.format(python=PYTHON))
    killed.chmod(0o755)
    plan = planned(folder, smollm2, killed)
    for name in tasks():
        PREFILLS["tier5"].make(plan, name)
    subject = step_subject(plan, 5)
    monkeypatch.setattr("evaluation.scoring.vllm.engine.TOGETHER", 16)
    with pytest.raises(ScoringError, match=r"vLLM .* ended with code 9 after \d+ of \d+ answers"):
        assert make(SCORE, subject).error is None
    monkeypatch.undo()
    plan = planned(folder, smollm2, PYTHON)
    subject = step_subject(plan, 5)
    record = plan.scores  # one checkpoint has scores there
    store = ScoreStore(record, next(path.name for path in record.iterdir()))
    before = {name: stored(store, name) for name in tasks()}
    assert sum(map(len, before.values())) >= 12
    made = make(SCORE, subject)
    assert made.error is None
    after = {name: stored(store, name) for name in tasks()}
    assert all(before[name].items() <= after[name].items() for name in before)
    assert make(COLLECT, subject).error is None
    entries = {
        name: item.entry
        for name, item in read_results(subject.folder, ("tier5",)).tiers["tier5"].items.items()
    }
    assert {entry.engine.name for entry in entries.values()} == {"vllm"}
    assert "<|im_start|>" in (subject.folder / "generation/chat/results.jsonl").read_text()
