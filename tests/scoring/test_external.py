"""An external program in place of the engine: the contract, and what is refused."""

import json
import sys

import pytest

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.errors import UnsupportedCheckpoint
from evaluation.grading.collect import collect
from evaluation.scoring.job import score_subject
from tests.scoring.external_programs import PROGRAMS, Program, check_ended, planned, subject_of
from tests.workflow.world import World, copy_world

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
def world(prefilled_world: World, tmp_path_factory: pytest.TempPathFactory) -> World:
    return copy_world(prefilled_world, tmp_path_factory.mktemp("external"))


def program(world: World, text: str) -> str:
    path = world.folder / "program.py"
    path.write_text(text)
    return f"{sys.executable} {path}"


def test_it_gets_the_contract_and_its_files_count(world: World) -> None:
    subject = planned(world, program(world, PROGRAM % "12.5"))
    assert score_subject(subject).error is None
    assert collect(subject).error is None
    content = json.loads((subject.folder / "tier2_ppl.json").read_text())
    assert content["slices"]["text"]["ppl"] == 12.5
    assert content["seen"] == {
        "LIGHTEVAL_CHECKPOINT_PATH": str(world.folder / "ckpts/stage1/10"),
        "LIGHTEVAL_STEP": "10",
        "LIGHTEVAL_TOKENIZER": str(subject.plan.tokenizer_folder),
        "LIGHTEVAL_SEQ_LEN": "64",
        "EVAL_DATA_DIR": str(subject.plan.cache),
    }
    assert content["protocol"].startswith("external: python")
    assert content["checkpoint_identity"]
    assert sorted(path.name for path in subject.folder.glob("*.*")) == [
        ".made",
        "tier2_ppl.json",
        "tier3_cf.json",
    ]


def test_what_it_gave_is_stored_like_any_score(world: World) -> None:
    """The same command is not run again, but for a script that was edited."""
    counting = "open('calls', 'a').write('x')\n"
    subject = planned(world, f"cd {world.folder}; {program(world, counting + PROGRAM % '7.5')}")
    for _ in range(2):
        assert score_subject(subject).error is None
    assert (world.folder / "calls").read_text() == "x"
    assert collect(subject).error is None
    content = json.loads((subject.folder / "tier2_ppl.json").read_text())
    assert content["slices"]["text"]["ppl"] == 7.5
    program(world, "raise SystemExit(3)")
    assert "exit code 3" in str(score_subject(subject).error)


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_hostile_programs(world: World, case: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world.folder)
    subject = subject_of(world, case, command_hours=case.seconds / 3600)
    score_subject(subject)
    check_ended(world, case, collect(subject).error)


def test_the_program_may_know_models_that_the_engine_does_not(world: World) -> None:
    subject = planned(world, program(world, PROGRAM % "12.5"))
    for name in ("model_config.json", "config.yaml"):
        path = world.folder / "ckpts/stage1/10" / name
        path.write_text(path.read_text().replace("is_llama_config", "is_starcoder2_config"))
    with pytest.raises(UnsupportedCheckpoint, match="Starcoder2"):
        check_complete(open_checkpoint(subject.checkpoint))
    assert score_subject(subject).error is None
    collect(subject)
    assert json.loads((subject.folder / "tier2_ppl.json").read_text())["slices"]
    shard = next((world.folder / "ckpts/stage1/10/model").rglob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-4])
    error = score_subject(subject).error
    assert error is not None
    assert shard.name in error
