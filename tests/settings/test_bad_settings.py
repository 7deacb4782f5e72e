"""Configurations and suites that a user may get wrong: what is said of each."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.errors import ConfigError
from evaluation.settings.config import load_config, stage_suite, validate_config
from evaluation.settings.plan import plan_stage
from evaluation.settings.suites import load_suite
from tests.workflow.paper import Paper

STAGE = {"checkpoints": "ckpts", "steps": [10], "suites": ["base"]}
AIM = {"tier": "tier2", "want": "keep", "margin": 0.1}


def content(top: dict[str, Any], **stage: Any) -> dict[str, Any]:
    return {"results": "r", "cache": "c", "stages": {"one": {**STAGE, **stage}}, **top}


def said(raw: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        validate_config(raw, "mine.yaml")
    return str(caught.value)


STAGE_KEYS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("a bare step", {"steps": 1000}, ["stages.one.steps", "1000 is no list", "[1000]", "`all`"]),
    ("a word", {"steps": "latest"}, ["'latest' is no list of steps", "`every: 500`"]),
    ("nothing", {"steps": None}, ["stages.one.steps", "None is no list"]),
    ("a step that is true", {"steps": [True]}, ["True is no step"]),
    ("true", {"steps": True}, ["True is no list", "[1000, 2000]"]),
    ("a fraction", {"steps": [1.5]}, ["1.5 is no step"]),
    ("a whole fraction", {"steps": [10.0]}, ["10.0 is no step"]),
    ("a text", {"steps": ["10"]}, ["'10' is no step"]),
    ("a negative step", {"steps": [-1]}, ["-1 is no step"]),
    ("a huge step", {"steps": [2**63]}, ["is no step"]),
    ("no step", {"steps": []}, ["no steps"]),
    ("a step twice", {"steps": [10, 20, 10]}, ["10 stands there twice", "distinct"]),
    ("every 0", {"steps": {"every": 0}}, ["every: 0 is no whole number from 1 on"]),
    ("every 0 as text", {"steps": "every: 0"}, ["every: 0 is no whole number"]),
    ("every -5", {"steps": {"every": -5}}, ["every: -5"]),
    ("every true", {"steps": {"every": True}}, ["every: True"]),
    ("every and more", {"steps": {"every": 5, "from": 1}}, ["is no list of steps"]),
    ("another key", {"steps": {"each": 5}}, ["is no list of steps"]),
    ("a user that is not there", {"results": "~nobody-of-that-name/x"}, ["one.results", "no user"]),
    ("a misspelt key", {"brige": None}, ["stages.one.brige", "did you mean `bridge`?"]),
    ("an unknown key", {"colour": 1}, ["stages.one.colour", "unknown key; there are", "steps"]),
    (
        "a misspelt key below",
        {"tokenizer": {"name": "x", "revison": "a"}},
        ["one.tokenizer.revison", "`revision`?"],
    ),
    (
        "a misspelt key in a list",
        {"objective": [{**AIM, "grop": 1}]},
        ["objective.0.grop", "`group`?"],
    ),
    (
        "an infinite margin",
        {"objective": [{**AIM, "margin": float("inf")}]},
        ["0.margin", "finite"],
    ),
    (
        "no number as margin",
        {"objective": [{**AIM, "margin": float("nan")}]},
        ["0.margin", "finite"],
    ),
    (
        "no margin to speak of",
        {"objective": [{**AIM, "margin": 1e-308}]},
        ["margin: 1e-308 is less"],
    ),
    ("hours as text", {"command": "x", "command_hours": "24"}, ["'24' is not a number"]),
    (
        "a margin that is true",
        {"objective": [{**AIM, "margin": True}]},
        ["0.margin", "True is not a"],
    ),
    (
        "a margin that is text",
        {"objective": [{**AIM, "margin": "0.1"}]},
        ["0.margin", "'0.1' is not"],
    ),
    ("an unknown tier", {"objective": [{**AIM, "tier": "tier9"}]}, ["0.tier", "tier9", "tier4"]),
    ("an empty command", {"command": ""}, ["stages.one.command", "is empty", "engine"]),
    ("a blank command", {"command": " \n"}, ["stages.one.command", "is empty"]),
    ("a number as a name", {"tokenizer": {"name": 7}}, ["7 is not text; put it in quotes"]),
    ("no as a revision", {"tokenizer": {"name": "x", "revision": False}}, ["False is not text"]),
    ("one suite without brackets", {"suites": "base"}, ["'base' is no list; write it as"]),
    ("a length that is true", {"sequence_length": True}, ["True is not a whole number"]),
    ("one for true", {"assume": {"use_mup": 1}}, ["use_mup", "1 is neither true nor false"]),
    ("0.0 for false", {"allow_shorter_sequences": 0.0}, ["0.0 is neither true nor false"]),
    ("yes as text", {"tokenizer": {"name": "x", "prepend_bos": "yes"}}, ["'yes' is neither"]),
    (
        "a training configuration for nothing",
        {"training_config": "x.yaml", "tokenizer": {"name": "x"}, "sequence_length": 64},
        ["stages.one.training_config: nothing is taken from x.yaml", "take it out"],
    ),
    ("a list for a mapping", {"bridge": ["one"]}, ["stages.one.bridge", "has no keys"]),
    ("an unknown bridge", {"bridge": {"stage": "on"}}, ["no stage 'on'", "did you mean one?"]),
    ("a stage and a path", {"bridge": {"stage": "one", "path": "x"}}, ["either `stage`"]),
    ("a path and a step", {"bridge": {"path": "x", "step": 5}}, ["`path` names the step's folder"]),
    ("itself by stage", {"bridge": {"stage": "one", "step": 10}}, ["zero by construction"]),
    ("itself by its last step", {"bridge": {"stage": "one"}}, ["zero by construction"]),
    ("itself by path", {"bridge": {"path": "ckpts/10"}}, ["zero by construction"]),
    ("itself by ..", {"bridge": {"path": "ckpts/../ckpts/./10/"}}, ["zero by construction"]),
    (
        "itself among all",
        {"steps": "all", "bridge": {"path": "ckpts/10"}},
        ["zero by construction"],
    ),
    ("itself among every", {"steps": "every: 5", "bridge": {"path": "ckpts/10"}}, ["zero by"]),
    ("an empty path", {"checkpoints": ""}, ["stages.one.checkpoints", "empty"]),
    ("a zero byte", {"checkpoints": "a\0b"}, ["stages.one.checkpoints", "cannot be printed"]),
    ("a line break", {"checkpoints": "a\nb"}, ["stages.one.checkpoints", "cannot be printed"]),
    ("a long name", {"checkpoints": "a/" + "x" * 300}, ["checkpoints", "than a path can be"]),
    ("an address", {"checkpoints": "s3://bucket/ckpts"}, ["is an address"]),
    (
        "a variable",
        {"checkpoints": "$NO_SUCH/x"},
        ["uses $NO_SUCH, which is not set", "export NO_SUCH="],
    ),
    (
        "a variable that is empty",
        {"checkpoints": "$EMPTY_ONE/x"},
        ["uses $EMPTY_ONE, which is empty", "export EMPTY_ONE="],
    ),
]


@pytest.mark.parametrize(
    ("keys", "words"), [c[1:] for c in STAGE_KEYS], ids=[c[0] for c in STAGE_KEYS]
)
def test_a_stage(keys: dict[str, Any], words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMPTY_ONE", "")
    sentence = said(content({}, **keys))
    assert "\n" not in sentence
    assert "(top level)" not in sentence
    for word in ["mine.yaml: ", *words]:
        assert word in sentence


TOP_KEYS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("a misspelt key", {"scorng": {}}, ["mine.yaml: scorng: unknown key; did you mean `scoring`?"]),
    (
        "a training configuration for nothing",
        {"training_config": "x.yaml", "tokenizer": {"name": "x"}, "sequence_length": 64},
        ["mine.yaml: training_config: nothing is taken from x.yaml", "`tokenizer` and"],
    ),
    ("a suite's folder", {"suites": ["base"]}, ["suites", "is not text"]),
    ("stages as a list", {"stages": ["one"]}, ["stages", "has no keys"]),
    ("an empty stage", {"stages": {"one": None}}, ["stages.one", "None has no keys"]),
    ("braces", {"results": "out{a}"}, ["results", "'out{a}'", "braces"]),
    ("an open brace", {"cache": "out{a"}, ["cache", "braces"]),
    ("a dash", {"results": "-out"}, ["results", "leading dash"]),
    ("a line break", {"results": "a\nb"}, ["results", "cannot be printed"]),
    ("a space at the end", {"results": "a "}, ["results", "space"]),
    ("a dtype", {"scoring": {"dtype": "fp8"}}, ["scoring.dtype", "bfloat16"]),
    ("rows of text", {"scoring": {"row_tokens": "many"}}, ["'many' is not a whole number"]),
    ("a run without a path", {"runs": {"b": {}}}, ["runs.b.path", "required"]),
    ("a run by time", {"runs": {"b": {"path": "r", "by": "time"}}}, ["runs.b.by", "'tokens'"]),
    ("a run as a path", {"runs": {"b": "results_b"}}, ["runs.b", "has no keys"]),
    ("a run called as this one", {"runs": {"this run": {"path": "r"}}}, ["choose another name"]),
    ("a run without a name", {"runs": {"": {"path": "r"}}}, ["runs.'': ", "1 to 40 characters"]),
    (
        "one variable in many paths",
        {"results": "$NO_SUCH/r", "cache": "$NO_SUCH/c"},
        ["mine.yaml: results (and 1 more keys): uses $NO_SUCH"],
    ),
]


@pytest.mark.parametrize(("keys", "words"), [c[1:] for c in TOP_KEYS], ids=[c[0] for c in TOP_KEYS])
def test_the_top_level(keys: dict[str, Any], words: list[str]) -> None:
    sentence = said(content(keys))
    assert "\n" not in sentence
    for word in ["mine.yaml: ", *words]:
        assert word in sentence


def test_many_mistakes_are_not_a_flood() -> None:
    lines = said(content({}, steps=[-1], **{f"k{n}": n for n in range(100)})).splitlines()
    assert len(lines) == 9
    assert lines[-1] == "mine.yaml: … and 93 more mistakes"


LINKS: list[tuple[str, Callable[[Path], None], dict[str, Any]]] = [
    ("a link to the folder", lambda f: (f / "b").symlink_to("ckpts"), {"path": "b/10"}),
    ("a link to the step", lambda f: (f / "b").symlink_to("ckpts/10"), {"path": "b"}),
    ("a step that is a link", lambda f: (f / "ckpts/20").symlink_to("10"), {"path": "ckpts/20"}),
]


@pytest.mark.parametrize(("link", "bridge"), [c[1:] for c in LINKS], ids=[c[0] for c in LINKS])
def test_a_bridge_to_itself_through_a_link(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    link: Callable[[Path], None],
    bridge: dict[str, Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ckpts" / "10").mkdir(parents=True)
    link(tmp_path)
    assert "zero by construction" in said(content({}, bridge=bridge))


def test_another_step_of_the_folder_is_a_bridge() -> None:
    for steps in ([20, 30], "every: 20"):
        config = validate_config(content({}, steps=steps, bridge={"path": "ckpts/10"}), "x")
        assert config.stages["one"].bridge is not None


def test_a_configuration_by_itself(tmp_path: Path) -> None:
    for name, text, word in (
        ("numbers as names", "stages: {1: {}}", "1 is not text; put it in quotes"),
        ("yes as a name", "stages: {yes: {}}", "True is not text"),
        ("nothing else", "stages: {}", "results: Field required"),
    ):
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        with pytest.raises(ConfigError) as caught:
            load_config(path)
        assert word in str(caught.value)


TRAININGS: list[tuple[str, str, list[str]]] = [
    (
        "a tokenizer as text",
        "tokenizer: x\ntokens: {sequence_length: 64}",
        ["no tokenizer.tokenizer_name"],
    ),
    (
        "tokens as a list",
        "tokenizer: {tokenizer_name_or_path: x}\ntokens: [1]",
        ["no tokens.sequence"],
    ),
    (
        "a length of 1",
        "tokenizer: {tokenizer_name_or_path: x}\ntokens: {sequence_length: 1}",
        ["2 or more"],
    ),
    (
        "true",
        "tokenizer: {tokenizer_name_or_path: x}\ntokens: {sequence_length: true}",
        ["2 or more"],
    ),
]


@pytest.mark.parametrize(
    ("text", "words"), [c[1:] for c in TRAININGS], ids=[c[0] for c in TRAININGS]
)
def test_a_training_configuration(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "train.yaml").write_text(text)
    paper = Paper(tmp_path / "paper", {"one": {}})
    raw = {**paper.content, "training_config": str(tmp_path / "train.yaml")}
    raw["suites"] = str(paper.folder / "suites")
    del raw["tokenizer"], raw["sequence_length"]
    with pytest.raises(ConfigError) as caught:
        plan_stage(validate_config(raw, "mine.yaml"), "one")
    for word in ["train.yaml", *words]:
        assert word in str(caught.value)


# --- suites -------------------------------------------------------------------------------------

TASK = {"dataset": "a/b", "choices": "choices", "gold": "label", "context": "{{ q }}"}
BASE = {"tasks": {"quiz": TASK}, "slices": {"web": {"dataset": "w", "tokens": 100}}}


def suite_files(folder: Path, **files: Any) -> Path:
    for name, suite in {"base": BASE, **files}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(suite))
    return folder


def changed(**sections: Any) -> dict[str, Any]:
    return {"extends": "base", "overrides": sections}


SUITES: list[tuple[str, str, dict[str, Any], list[str]]] = [
    (
        "a misspelt suite",
        "bas",
        {},
        ["suites: no such file", "did you mean base?", "there are base"],
    ),
    ("another suite", "xyz", {}, ["suites: no such file", "there are base, mine"]),
    ("a misspelt base", "mine", {"extends": "bse"}, ["mine.yaml: extends", "did you mean base?"]),
    ("an item again", "mine", {"extends": "base", **BASE}, ["already used"]),
    (
        "no item to change",
        "mine",
        changed(tasks={"quizz": {"limit": 5}}),
        ["overrides.tasks.quizz", "`quiz`?"],
    ),
    (
        "in another section",
        "mine",
        changed(slices={"quiz": {}}),
        ["overrides.slices.quiz", "there are web"],
    ),
    (
        "a key it lacks",
        "mine",
        changed(tasks={"quiz": {"limt": 5}}),
        ["overrides.tasks.quiz: limt", "`limit`?"],
    ),
    (
        "a wrong value",
        "mine",
        changed(tasks={"quiz": {"limit": 0}}),
        ["overrides.tasks.quiz: limit", "greater"],
    ),
    ("a circle", "mine", {"extends": "mine"}, ["circle"]),
    ("pmi", "mine", {"tasks": {"t": {**TASK, "primary": "pmi"}}}, ["unconditional_context"]),
    ("no section", "mine", changed(task={}), ["overrides.task: unknown key", "`tasks`?"]),
    ("nothing extended", "mine", {"overrides": {"tasks": {}}}, ["nothing is extended"]),
    (
        "a limit that is true",
        "mine",
        {"tasks": {"t": {**TASK, "limit": True}}},
        ["True is not a whole"],
    ),
    (
        "a misspelt key",
        "mine",
        {"tasks": {"t": {**TASK, "gould": 1}}},
        ["tasks.t.gould", "`gold`?"],
    ),
]


@pytest.mark.parametrize(
    ("name", "mine", "words"), [c[1:] for c in SUITES], ids=[c[0] for c in SUITES]
)
def test_a_suite(tmp_path: Path, name: str, mine: dict[str, Any], words: list[str]) -> None:
    suite_files(tmp_path, mine=mine)
    with pytest.raises(ConfigError) as caught:
        load_suite(tmp_path, name)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_single_keys_of_inherited_items(tmp_path: Path) -> None:
    own = {**changed(tasks={"quiz": {"limit": 500}}), "slices": {"more": {"dataset": "m"}}}
    suite_files(
        tmp_path,
        mine=own,
        top={"extends": "mine", "overrides": {"tasks": {"quiz": {"group": "g"}}}},
    )
    suite = load_suite(tmp_path, "top")
    assert (suite.tasks["quiz"].limit, suite.tasks["quiz"].group) == (500, "g")
    assert suite.tasks["quiz"].context == TASK["context"]
    assert list(suite.slices) == ["web", "more"]
    assert suite.slices["web"].tokens == 100
    assert load_suite(tmp_path, "base").tasks["quiz"].limit == 12_000


def test_a_folder_without_suites_and_a_suite_without_items(tmp_path: Path) -> None:
    raw = content({"suites": str(tmp_path / "none")})
    with pytest.raises(ConfigError, match="nor any other suite"):
        stage_suite(validate_config(raw, "mine.yaml"), "one")
    assert not os.path.exists(tmp_path / "none")
    suite_files(tmp_path, base={})
    with pytest.raises(ConfigError, match="no items"):
        stage_suite(validate_config(content({"suites": str(tmp_path)}), "mine.yaml"), "one")


def test_a_suite_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "base.yaml")
    with pytest.raises(ConfigError, match="is a folder, pipe or device, not a file"):
        load_suite(tmp_path, "base")
