"""An external program in place of the engine: the contract, and what is refused."""

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.checkpoints.subjects import Subject, step_subject
from evaluation.flow.make import make
from evaluation.flow.targets import COLLECT, SCORE
from evaluation.settings.config import load_config
from evaluation.settings.planning import plan_stage
from tests.conftest import ROOT
from tests.tables import table
from tests.workflow.world import World, copy_world

HONEST = """
import json, os, pathlib, signal, subprocess, sys, time
results = pathlib.Path(os.environ["LIGHTEVAL_RESULTS_DIR"])
file = results / "tier2_ppl.json"
TIER2 = {"slices": {"text": {"ppl": 12.5}}}
TIER3 = {"tasks": {"quiz": {"accuracy": 0.5}}}
OURS = dict.fromkeys(("stage", "role", "checkpoint", "checkpoint_identity", "tokenizer"), "x")
OURS |= {"step": "5", "sequence_length": "1", "protocol": "1"}
def write(tier2=TIER2, tier3=TIER3):
    file.write_text(json.dumps(tier2))
    (results / "tier3_cf.json").write_text(json.dumps(tier3))
def ppl(value):
    write({"slices": {"text": {"ppl": value}}})
def child(**named):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], **named)
    pathlib.Path("child").write_text(str(child.pid))
    return child
"""
"""Begins every program; `write()` gives what the suite of the tiny world asks for."""


def header_is_ours(world: World, folder: Path) -> None:
    """The kinds and values that a run without a program would have written."""
    for name in ("tier2_ppl.json", "tier3_cf.json"):
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        assert (content["stage"], content["step"], content["role"]) == ("stage1", 10, "step")
        assert content["checkpoint"] == str(world.folder / "ckpts/stage1/10")
        assert content["checkpoint_identity"] not in ("x", "", None)
        assert isinstance(content["tokenizer"], dict)
        assert content["sequence_length"] == 64
        assert content["protocol"] != "1"


def no_secret_is_stored(world: World, folder: Path) -> None:
    """A command line may hold a token: its fingerprint is kept, not its text."""
    for path in folder.rglob("*"):
        assert path.is_dir() or b"sk-secret" not in path.read_bytes()


def no_child_lives(world: World, _: Path) -> None:
    """The program's child wrote its number, and neither writes nor lives any more."""
    number = int((world.folder / "child").read_text())
    for _ in range(50):
        state = Path("/proc", str(number), "stat")
        if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.1)
    os.kill(number, 9)
    raise AssertionError("the program's child outlived it")


def only_tier_files(_: World, folder: Path) -> None:
    """What a program writes under other names is not taken over."""
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == [
        "tier2_ppl.json",
        "tier3_cf.json",
    ]
    assert all(path.is_file() and not path.is_symlink() for path in folder.glob("tier*"))


PROGRAMS: dict[str, list[Any]] = table("scoring/programs")
PROGRAM = (
    HONEST
    + """
seen = {name: os.environ[name] for name in (
    "LIGHTEVAL_CHECKPOINT_PATH", "LIGHTEVAL_STEP", "LIGHTEVAL_TOKENIZER",
    "LIGHTEVAL_SEQ_LEN", "EVAL_DATA_DIR")}
write(TIER2 | {"seen": seen})
"""
)


@pytest.fixture(scope="module")
def world(prefilled_world: World, tmp_path_factory: pytest.TempPathFactory) -> World:
    return copy_world(prefilled_world, tmp_path_factory.mktemp("external"))


def program(world: World, text: str) -> str:
    """Writes a program beside the world's configuration; gives the shell command that runs it."""
    path = world.folder / "program.py"
    path.write_text(text + "\n", encoding="utf-8")
    return f"{sys.executable} {path}"


def planned(world: World, command: str, **stage: Any) -> Subject:
    """A checkpoint of a stage that this command scores; `stage` are further keys of the stage."""
    content = yaml.safe_load(world.config.read_text())
    content["stages"]["stage1"] |= {"command": command, **stage}
    path = world.folder / "external.yaml"
    path.write_text(yaml.safe_dump(content))
    return step_subject(plan_stage(load_config(path), "stage1"), 10)


def tier2(subject: Subject) -> Any:
    return json.loads((subject.folder / "tier2_ppl.json").read_text())


def test_it_gets_the_contract_and_its_files_count(world: World) -> None:
    subject = planned(world, program(world, PROGRAM))
    assert make(SCORE, subject).error is None
    assert make(COLLECT, subject).error is None
    content = tier2(subject)
    assert content["slices"]["text"]["ppl"] == 12.5
    assert content["seen"] == {
        "LIGHTEVAL_CHECKPOINT_PATH": str(world.folder / "ckpts/stage1/10"),
        "LIGHTEVAL_STEP": "10",
        "LIGHTEVAL_TOKENIZER": str(subject.plan.tokenizer_folder),
        "LIGHTEVAL_SEQ_LEN": "64",
        "EVAL_DATA_DIR": str(subject.plan.cache),
    }
    assert content["protocol"].startswith("external: python")


def test_what_it_gave_is_stored_like_any_score(world: World) -> None:
    """The same command is not run again, but for a script that was edited."""
    counting = "open('calls', 'a').write('x')\n"
    subject = planned(
        world, f"cd {world.folder}; {program(world, counting + PROGRAM.replace('12.5', '7.5'))}"
    )
    for _ in range(2):
        assert make(SCORE, subject).error is None
    assert (world.folder / "calls").read_text() == "x"
    assert make(COLLECT, subject).error is None
    assert tier2(subject)["slices"]["text"]["ppl"] == 7.5
    program(world, "raise SystemExit(3)")
    assert "exit code 3" in str(make(SCORE, subject).error)


@pytest.mark.parametrize("name", PROGRAMS)
def test_hostile_programs(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, outcome, after, seconds = (*PROGRAMS[name], None, 300)[:4]
    monkeypatch.chdir(world.folder)
    command = program(world, HONEST + text) + " # sk-secret" * (after == "no_secret_is_stored")
    subject = planned(world, command, command_hours=(seconds or 300) / 3600)
    make(SCORE, subject)
    error = make(COLLECT, subject).error
    if outcome is None:
        assert error is None
    else:
        assert error is not None
        assert outcome in error
        assert "stages.stage1" in error
        assert not list(subject.folder.glob("tier*"))
    assert not list(world.results().glob("external-*"))
    if after is not None:
        globals()[after](world, subject.folder)


OLMES = """
import json, pathlib, sys
from transformers import AutoModelForCausalLM, AutoTokenizer
_, _, model, _, task, _, folder = sys.argv
size = AutoModelForCausalLM.from_pretrained(model).config.vocab_size
assert size >= len(AutoTokenizer.from_pretrained(model))
file = pathlib.Path(folder, f"task-000-{task.partition(':')[0]}-metrics.json")
file.parent.mkdir()
file.write_text(json.dumps({"metrics": {"primary_score": 0.25}}))
"""
"""A stand-in for OLMES, which loads the folder that it is given."""


def test_the_example_of_another_harness(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs/provider_tasks.md").read_text()
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", text.rpartition("## Any other")[2], re.DOTALL))
    (world.folder / "olmes.py").write_text(blocks["python"])
    olmes = world.folder / "bin/olmes"
    olmes.parent.mkdir()
    olmes.write_text(f"#!{sys.executable}\n{OLMES}")
    olmes.chmod(0o755)
    monkeypatch.setenv("PATH", f"{olmes.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(world.folder)
    command = yaml.safe_load(blocks["yaml"])["stages"]["olmes"]["command"]
    command = command.replace(".venv-olmes/bin/python", sys.executable)
    tier2 = f"{program(world, HONEST + 'write()')}; "
    subject = planned(world, tier2 + command)
    assert make(SCORE, subject).error is None
    assert make(COLLECT, subject).error is None
    content = json.loads((subject.folder / "tier3_cf.json").read_text())
    assert content["tasks"]["quiz"]["accuracy"] == 0.25
