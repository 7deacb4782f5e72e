"""An external program in place of the engine: the contract, and what is refused."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.errors import IncompleteCheckpoint, ScoringError, UnsupportedCheckpoint
from evaluation.scoring.external import run_external
from evaluation.scoring.results import Subject, step_subject
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan, plan_stage
from tests.workflow.world import build_world

PROGRAM = """
import json, os, pathlib
results = pathlib.Path(os.environ["LIGHTEVAL_RESULTS_DIR"])
seen = {name: os.environ[name] for name in (
    "LIGHTEVAL_CHECKPOINT_PATH", "LIGHTEVAL_STEP", "LIGHTEVAL_TOKENIZER",
    "LIGHTEVAL_SEQ_LEN", "EVAL_DATA_DIR")}
(results / "tier2_ppl.json").write_text(json.dumps({"slices": {"text": {"ppl": %s}}, "seen": seen}))
(results / "tier3_cf.json").write_text(json.dumps({"tasks": {"quiz": {"accuracy": 0.5}}}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_world(tmp_path_factory.mktemp("external")).folder


def planned(folder: Path, command: str) -> tuple[StagePlan, Subject]:
    content = yaml.safe_load((folder / "config.yaml").read_text())
    content["stages"]["stage1"]["command"] = command
    path = folder / "external.yaml"
    path.write_text(yaml.safe_dump(content))
    plan = plan_stage(load_config(path), "stage1")
    return plan, step_subject(plan, 10)


def program(folder: Path, text: str) -> str:
    path = folder / "program.py"
    path.write_text(text)
    return f"{sys.executable} {path}"


def test_it_gets_the_contract_and_its_files_count(folder: Path) -> None:
    plan, subject = planned(folder, program(folder, PROGRAM % "12.5"))
    run_external(plan, subject)
    content = json.loads((subject.folder / "tier2_ppl.json").read_text())
    assert content["slices"]["text"]["ppl"] == 12.5
    assert content["seen"] == {
        "LIGHTEVAL_CHECKPOINT_PATH": str(folder / "ckpts/stage1/10"),
        "LIGHTEVAL_STEP": "10",
        "LIGHTEVAL_TOKENIZER": str(plan.tokenizer_folder),
        "LIGHTEVAL_SEQ_LEN": "64",
        "EVAL_DATA_DIR": str(plan.cache),
    }
    assert content["protocol"].startswith("external: ")
    assert content["checkpoint_identity"]
    assert sorted(path.name for path in subject.folder.iterdir()) == [
        "tier2_ppl.json",
        "tier3_cf.json",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise SystemExit(3)", "exit code 3"),
        ("", "wrote no tier2_ppl.json"),
        (PROGRAM % "float('nan')", "slices.text.ppl is nan"),
        (PROGRAM.replace('"text"', '"other"') % "1.0", "slices.text is missing"),
        (PROGRAM.replace("0.5", "50") % "1.0", "tasks.quiz.accuracy is 50"),
        (PROGRAM.replace("json.dumps({", "str({") % "1.0", "is not JSON"),
    ],
)
def test_what_does_not_hold_the_suite_does_not_count(folder: Path, text: str, words: str) -> None:
    plan, _ = planned(folder, program(folder, text))
    subject = step_subject(plan, 20)
    with pytest.raises(ScoringError, match=words):
        run_external(plan, subject)
    assert list(subject.folder.iterdir()) == []


def test_the_program_may_know_models_that_the_engine_does_not(folder: Path) -> None:
    plan, subject = planned(folder, program(folder, PROGRAM % "12.5"))
    path = folder / "ckpts/stage1/10/model_config.json"
    llama = path.read_text()
    path.write_text(llama.replace("is_llama_config", "is_starcoder2_config"))
    with pytest.raises(UnsupportedCheckpoint, match="Starcoder2"):
        check_complete(open_checkpoint(subject.checkpoint))
    run_external(plan, subject)
    assert json.loads((subject.folder / "tier2_ppl.json").read_text())["slices"]
    shard = next((folder / "ckpts/stage1/10/model").rglob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-4])
    with pytest.raises(IncompleteCheckpoint, match=shard.name):
        run_external(plan, subject)
