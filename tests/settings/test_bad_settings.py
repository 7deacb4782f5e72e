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


def stage(**keys: Any) -> dict[str, Any]:
    return content({}, **keys)


def aim(**keys: Any) -> dict[str, Any]:
    return stage(objective=[{**AIM, **keys}])


def bridge(steps: Any = (10,), **keys: Any) -> dict[str, Any]:
    return stage(steps=list(steps) if isinstance(steps, tuple) else steps, bridge=keys)


BUILT_ZERO = ["zero by construction"]
TRAINED = {"training_config": "x.yaml", "tokenizer": {"name": "x"}, "sequence_length": 64}

WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a bare step": (stage(steps=1000), ["one.steps", "1000 is no list", "[1000]", "`all`"]),
    "a word": (stage(steps="latest"), ["'latest' is no list of steps", "`every: 500`"]),
    "steps that are true": (stage(steps=True), ["True is no list", "[1000, 2000]"]),
    "a step that is true": (stage(steps=[True]), ["True is no step"]),
    "a whole fraction": (stage(steps=[10.0]), ["10.0 is no step"]),
    "a text as step": (stage(steps=["10"]), ["'10' is no step"]),
    "no step": (stage(steps=[]), ["no steps"]),
    "a step twice": (stage(steps=[10, 20, 10]), ["10 stands there twice", "distinct"]),
    "every 0 as text": (stage(steps="every: 0"), ["every: 0 is no whole number from 1 on"]),
    "every true": (stage(steps={"every": True}), ["every: True"]),
    "every and more": (stage(steps={"every": 5, "from": 1}), ["is no list of steps"]),
    "a user that is not there": (stage(results="~nobody-of-that-name/x"), ["results", "no user"]),
    "a misspelt key": (stage(brige=None), ["stages.one.brige", "did you mean `bridge`?"]),
    "an unknown key": (stage(colour=1), ["one.colour", "unknown key; there are", "steps"]),
    "a misspelt key in a list": (aim(grop=1), ["objective.0.grop", "`group`?"]),
    "an infinite margin": (aim(margin=float("inf")), ["0.margin", "finite"]),
    "no number as margin": (aim(margin=float("nan")), ["0.margin", "finite"]),
    "no margin to speak of": (aim(margin=1e-308), ["margin: 1e-308 is less"]),
    "a margin that is true": (aim(margin=True), ["0.margin", "True is not a"]),
    "a margin that is text": (aim(margin="0.1"), ["0.margin", "'0.1' is not"]),
    "an unknown tier": (aim(tier="tier9"), ["0.tier", "tier9", "tier4"]),
    "a blank command": (stage(command=" \n"), ["stages.one.command", "is empty", "engine"]),
    "a number as a name": (stage(tokenizer={"name": 7}), ["7 is not text; put it in quotes"]),
    "one suite without brackets": (stage(suites="base"), ["'base' is no list; write it as"]),
    "a length that is true": (stage(sequence_length=True), ["True is not a whole number"]),
    "one for true": (stage(assume={"use_mup": 1}), ["use_mup", "1 is neither true nor false"]),
    "a training configuration for nothing": (
        stage(**TRAINED),
        ["one.training_config: nothing is taken from x.yaml", "take it out"],
    ),
    "the same of all stages": (content(TRAINED), ["mine.yaml: training_config: nothing is taken"]),
    "a list for a mapping": (stage(bridge=["one"]), ["stages.one.bridge", "has no keys"]),
    "an unknown bridge": (bridge(stage="on"), ["no stage 'on'", "did you mean one?"]),
    "a stage and a path": (bridge(stage="one", path="x"), ["either `stage`"]),
    "a path and a step": (bridge(path="x", step=5), ["`path` names the step's folder"]),
    "itself by stage": (bridge(stage="one", step=10), BUILT_ZERO),
    "itself by its last step": (bridge(stage="one"), BUILT_ZERO),
    "itself by path": (bridge(path="ckpts/../ckpts/./10/"), BUILT_ZERO),
    "itself among all": (bridge("all", path="ckpts/10"), BUILT_ZERO),
    "itself among every": (bridge("every: 5", path="ckpts/10"), BUILT_ZERO),
    "an empty path": (stage(checkpoints=""), ["stages.one.checkpoints", "empty"]),
    "a line break": (stage(checkpoints="a\nb"), ["one.checkpoints", "cannot be printed"]),
    "a long name": (stage(checkpoints="a/" + "x" * 300), ["checkpoints", "than a path can be"]),
    "an address": (stage(checkpoints="s3://bucket/ckpts"), ["is an address"]),
    "a variable": (stage(checkpoints="$NO_SUCH/x"), ["$NO_SUCH, which is not set", "export NO_"]),
    "an empty variable": (stage(checkpoints="$EMPTY/x"), ["$EMPTY, which is empty", "export EM"]),
    "one variable in many paths": (
        content({"results": "$NO_SUCH/r", "cache": "$NO_SUCH/c"}),
        ["mine.yaml: results (and 1 more keys): uses $NO_SUCH"],
    ),
    "a misspelt section": (
        content({"scorng": {}}),
        ["scorng: unknown key; did you mean `scoring`?"],
    ),
    "stages as a list": (content({"stages": ["one"]}), ["stages", "has no keys"]),
    "an empty stage": (content({"stages": {"one": None}}), ["stages.one", "None has no keys"]),
    "an open brace": (content({"cache": "out{a"}), ["cache", "'out{a'", "braces"]),
    "a dash": (content({"results": "-out"}), ["results", "leading dash"]),
    "a space at the end": (content({"results": "a "}), ["results", "space"]),
    "a dtype": (content({"scoring": {"dtype": "fp8"}}), ["scoring.dtype", "bfloat16"]),
    "a run without a path": (content({"runs": {"b": {}}}), ["runs.b.path", "required"]),
    "a run by time": (content({"runs": {"b": {"path": "r", "by": "time"}}}), ["b.by", "'tokens'"]),
    "a run called as this one": (
        content({"runs": {"this run": {"path": "r"}}}),
        ["choose another name"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_configuration(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMPTY", "")
    raw, words = WRONG[name]
    sentence = said(raw)
    assert "\n" not in sentence
    assert "(top level)" not in sentence
    for word in ["mine.yaml: ", *words]:
        assert word in sentence


def test_many_mistakes_are_not_a_flood() -> None:
    lines = said(content({}, steps=[-1], **{f"k{n}": n for n in range(100)})).splitlines()
    assert len(lines) == 9
    assert lines[-1] == "mine.yaml: … and 93 more mistakes"


LINKS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a link to the folder": (lambda f: (f / "b").symlink_to("ckpts"), "b/10"),
    "a link to the step": (lambda f: (f / "b").symlink_to("ckpts/10"), "b"),
    "a step that is a link": (lambda f: (f / "ckpts/20").symlink_to("10"), "ckpts/20"),
}


@pytest.mark.parametrize("name", LINKS)
def test_a_bridge_to_itself_through_a_link(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ckpts" / "10").mkdir(parents=True)
    link, path = LINKS[name]
    link(tmp_path)
    assert "zero by construction" in said(bridge(path=path))


def test_another_step_of_the_folder_is_a_bridge() -> None:
    for steps in ([20, 30], "every: 20"):
        config = validate_config(bridge(steps, path="ckpts/10"), "x")
        assert config.stages["one"].bridge is not None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("stages: {1: {}}", "1 is not text; put it in quotes"),
        ("stages: {yes: {}}", "True is not text"),
        ("stages: {}", "results: Field required"),
    ],
)
def test_a_configuration_by_itself(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "mine.yaml")
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tokenizer: x\ntokens: {sequence_length: 64}", "no tokenizer.tokenizer_name"),
        ("tokenizer: {tokenizer_name_or_path: x}\ntokens: [1]", "no tokens.sequence"),
        ("tokenizer: {tokenizer_name_or_path: x}\ntokens: {sequence_length: true}", "2 or more"),
    ],
)
def test_a_training_configuration(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "train.yaml").write_text(text)
    paper = Paper(tmp_path / "paper", {"one": {}})
    raw = {**paper.content, "training_config": str(tmp_path / "train.yaml")}
    raw["suites"] = str(paper.folder / "suites")
    del raw["tokenizer"], raw["sequence_length"]
    with pytest.raises(ConfigError, match=rf"train\.yaml.*{words}"):
        plan_stage(validate_config(raw, "mine.yaml"), "one")


# --- suites -------------------------------------------------------------------------------------

TASK = {"dataset": "a/b", "choices": "choices", "gold": "label", "context": "{{ q }}"}
BASE = {
    "attention": "document",
    "tasks": {"quiz": TASK},
    "slices": {"web": {"dataset": "w", "tokens": 100}},
}


def suite_files(folder: Path, **files: Any) -> Path:
    for name, suite in {"base": BASE, **files}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(suite))
    return folder


def changed(**sections: Any) -> dict[str, Any]:
    return {"extends": "base", "overrides": sections}


def quiz(**keys: Any) -> dict[str, Any]:
    return changed(tasks={"quiz": keys})


def task(**keys: Any) -> dict[str, Any]:
    return {"tasks": {"t": {**TASK, **keys}}}


def probe(**check: Any) -> dict[str, Any]:
    one = {"category": "c", "messages": [{"role": "user", "content": "x"}], "checks": [check]}
    return {"probes": {"p": one}}


SUITES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a misspelt base": ({"extends": "bse"}, ["mine.yaml: extends", "did you mean base?"]),
    "an item again": (
        {"extends": "base", "tasks": {"quiz": {**BASE["tasks"]["quiz"], "limit": 3}}},
        ["tasks.quiz", "defines this name differently"],
    ),
    "no item to change": (changed(tasks={"quizz": {}}), ["overrides.tasks.quizz", "`quiz`?"]),
    "in another section": (changed(slices={"quiz": {}}), ["slices.quiz", "there are web"]),
    "a key it lacks": (quiz(limt=5), ["overrides.tasks.quiz: limt", "`limit`?"]),
    "a wrong value": (quiz(limit=0), ["overrides.tasks.quiz: limit", "greater"]),
    "a circle": ({"extends": "mine"}, ["circle"]),
    "pmi": (task(primary="pmi"), ["unconditional_context"]),
    "no section": (changed(task={}), ["overrides.task: unknown key", "`tasks`?"]),
    "nothing extended": ({"overrides": {"tasks": {}}}, ["nothing is extended"]),
    "a misspelt key": (task(gould=1), ["tasks.t.gould", "`gold`?"]),
    "an unknown check": (
        probe(check="word_cuont"),
        ["probes.p.checks.0", "'word_cuont' is unknown; did you mean `word_count`?"],
    ),
    "no check": (probe(at_most=5), ["probes.p.checks.0: needs the key `check` beside at_most"]),
}


@pytest.mark.parametrize("name", SUITES)
def test_a_suite(tmp_path: Path, name: str) -> None:
    mine, words = SUITES[name]
    with pytest.raises(ConfigError) as caught:
        load_suite(suite_files(tmp_path, mine=mine), "mine")
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("name", "hint"), [("bas", "did you mean base?"), ("xyz", "there are base")]
)
def test_a_suite_that_is_not_there(tmp_path: Path, name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match="suites: no such file") as caught:
        load_suite(suite_files(tmp_path), name)
    assert hint in str(caught.value)


def test_suites_that_extend_each_other_without_end(tmp_path: Path) -> None:
    chain = {f"s{n}": {"extends": f"s{n + 1}"} for n in range(60)}
    with pytest.raises(ConfigError, match="more than 50 suites extend each other"):
        load_suite(suite_files(tmp_path, **chain), "s0")


def test_single_keys_of_inherited_items(tmp_path: Path) -> None:
    own = {**quiz(limit=500), "slices": {"more": {"dataset": "m"}}}
    top = {"extends": "mine", "overrides": {"tasks": {"quiz": {"group": "g"}}}}
    suite_files(tmp_path, mine=own, top=top)
    suite = load_suite(tmp_path, "top")
    assert (suite.tasks["quiz"].limit, suite.tasks["quiz"].group) == (500, "g")
    assert suite.tasks["quiz"].context == TASK["context"]
    assert list(suite.slices) == ["web", "more"]
    assert suite.slices["web"].tokens == 100
    assert suite.attention == "document"
    assert load_suite(tmp_path, "base").tasks["quiz"].limit == 12_000


def test_a_folder_without_suites_and_a_suite_without_items(tmp_path: Path) -> None:
    raw = content({"suites": str(tmp_path / "none")})
    with pytest.raises(ConfigError, match="nor any other suite"):
        stage_suite(validate_config(raw, "mine.yaml"), "one")
    assert not os.path.exists(tmp_path / "none")
    suite_files(tmp_path, base={})
    with pytest.raises(ConfigError, match="no items"):
        stage_suite(validate_config(content({"suites": str(tmp_path)}), "mine.yaml"), "one")
    outside = probe(check="complies")
    outside["probes"]["p"]["headline"] = False
    suite_files(tmp_path, base=outside)
    with pytest.raises(ConfigError, match="all probes have `headline: false`"):
        stage_suite(validate_config(content({"suites": str(tmp_path)}), "mine.yaml"), "one")


def test_a_suite_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "base.yaml")
    with pytest.raises(ConfigError, match="is a folder, pipe or device, not a file"):
        load_suite(tmp_path, "base")
