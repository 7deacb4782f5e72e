"""An external program in place of the engine: the contract, and what is refused."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.subjects import Subject, step_subject
from evaluation.errors import UnsupportedCheckpoint
from evaluation.grading.collect import collect
from evaluation.scoring.job import score_subject
from evaluation.settings.config import load_config
from evaluation.settings.plan import plan_stage
from tests.scoring.external_programs import PROGRAMS, Program, check_ended, subject_of
from tests.workflow.world import World, build_prefilled

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
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return build_prefilled(tmp_path_factory.mktemp("external"))


def planned(world: World, command: str, step: int = 10) -> Subject:
    content = yaml.safe_load(world.config.read_text())
    content["stages"]["stage1"]["command"] = command
    path = world.folder / "external.yaml"
    path.write_text(yaml.safe_dump(content))
    return step_subject(plan_stage(load_config(path), "stage1"), step)


def program(world: World, text: str) -> str:
    path = world.folder / "program.py"
    path.write_text(text)
    return f"{sys.executable} {path}"


def test_it_gets_the_contract_and_its_files_count(world: World) -> None:
    subject = planned(world, f"TOKEN=sk-secret {program(world, PROGRAM % '12.5')}")
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
    for path in world.results().rglob("*"):
        assert path.is_dir() or b"sk-secret" not in path.read_bytes()


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise SystemExit(3)", "exit code 3"),
        ("", "wrote no tier2_ppl.json"),
        (PROGRAM % "float('nan')", "tier2_ppl.json: not JSON (NaN"),
        (PROGRAM % "0", "slices.text.ppl is 0"),
        (PROGRAM.replace('"text"', '"other"') % "1.0", "slices.text is missing"),
        (PROGRAM.replace("0.5", "50") % "1.0", "tasks.quiz.accuracy is 50"),
        (PROGRAM.replace("json.dumps({", "str({") % "1.0", "not JSON"),
    ],
)
def test_what_does_not_hold_the_suite_does_not_count(
    world: World, text: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(text)
    subject = planned(world, f"{sys.executable} {path}", 20)
    error = score_subject(subject).error
    assert error is not None
    assert words in error
    assert collect(subject).error == error
    assert not list(subject.folder.glob("tier*"))


MORE = 'json.dumps({"slices": {"text": {"ppl": %s}}, '
UNREADABLE = [
    ('json.dumps({"overall": {"ppl": -4}, ', "overall.ppl"),
    (MORE.replace("}}, ", '}, "extra": {"ppl": -1}}, ') % "2.0", "slices.extra.ppl"),
]


@pytest.mark.parametrize(("written", "named"), UNREADABLE, ids=lambda one: str(one)[-16:])
def test_what_no_reader_would_take_is_the_commands_error(
    world: World, written: str, named: str, tmp_path: Path
) -> None:
    """What is beside the numbers that the suite asks for: else it would be called damaged for ever."""
    text = PROGRAM % "2.0"
    begin = (
        'json.dumps({"slices": {"text": {"ppl": 2.0}}, ' if "slices" in written else "json.dumps({"
    )
    assert begin in text
    path = tmp_path / "program.py"
    path.write_text(text.replace(begin, written, 1))
    subject = planned(world, f"{sys.executable} {path}", 20)
    assert score_subject(subject).error is None
    error = collect(subject).error
    assert error is not None
    assert error.startswith("stages.stage1.command: its tier2_ppl.json: ")
    assert named in error
    assert error.endswith("correct what the command writes")
    assert not list(subject.folder.glob("tier*"))


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
