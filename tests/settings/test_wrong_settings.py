"""Configurations and suites that a user may get wrong: each mistake is a line that names file and key."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.errors import ConfigError
from evaluation.settings.config import load_config, validate_config
from evaluation.settings.objectives import Objective, settled_objective
from evaluation.settings.planning import plan_stage, stage_suite
from evaluation.settings.suites import Suite, load_suite
from evaluation.settings.yaml_files import read_yaml
from tests.tables import cases, table
from tests.workflow.world import paper

STAGE = {"checkpoints": "ckpts", "steps": [10], "suites": ["base"]}
OBJECTIVE = {"tier": "tier2", "want": "keep", "margin": 0.1}


def content(top: dict[str, Any], **stage: Any) -> dict[str, Any]:
    return {"results": "r", "cache": "c", "stages": {"one": {**STAGE, **stage}}, **top}


def refusal(read: Callable[..., object], *arguments: object) -> str:
    """The one line of an error."""
    with pytest.raises(ConfigError) as caught:
        read(*arguments)
    (line,) = str(caught.value).split("\n")
    return line


def written(folder: Path, text: str) -> Path:
    (folder / "mine.yaml").write_bytes(text.encode("utf-8", "surrogateescape"))
    return folder / "mine.yaml"


def wrong(section: str) -> list[tuple[str, Any]]:
    """Each key with each of its values."""
    found = table("settings/wrong")[section]
    return [(key, value) for key, values in found.items() for value in values]


WRONG = [
    *((content({}, **{key: value}), f"stages.one.{key}") for key, value in wrong("stage")),
    *(
        (content({}, objective=[{**OBJECTIVE, key: value}]), f"stages.one.objective.0.{key}")
        for key, value in wrong("objective_keys")
    ),
    *((content({key: value}), key) for key, value in wrong("top")),
]


@pytest.mark.parametrize(("raw", "key"), WRONG)
def test_a_configuration(raw: Any, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMPTY", "")
    line = refusal(validate_config, raw, "mine.yaml")
    assert line.startswith(f"mine.yaml: {key}")


def test_each_mistake_has_its_line_and_what_was_meant() -> None:
    raw = content({"notify": "x", "scorng": {}}, brige=None, steps=["x"], suites=[True, "a"])
    with pytest.raises(ConfigError) as caught:
        validate_config(raw, "mine.yaml")
    lines = {line.split(": ")[1]: line for line in str(caught.value).split("\n")}
    stage = ("stages.one.steps.0", "stages.one.suites.0", "stages.one.brige")
    assert lines.keys() == {"notify", "scorng", *stage}
    for key, meant in (("scorng", "scoring"), ("stages.one.brige", "bridge")):
        assert f"(did you mean {meant}?)" in lines[key]
    assert "no longer exists" in lines["notify"]


@pytest.mark.parametrize(("text", "key"), cases("settings/wrong", "training_config"))
def test_a_training_configuration(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "train.yaml").write_text(text)
    raw = yaml.safe_load(paper(tmp_path / "paper", "one").config.read_text())
    raw["training_config"] = str(tmp_path / "train.yaml")
    del raw["tokenizer"], raw["sequence_length"]
    line = refusal(plan_stage, validate_config(raw, "mine.yaml"), "one")
    assert f"train.yaml: {key}" in line


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


@pytest.mark.parametrize(("key", "value"), wrong("suite"))
def test_a_suite(tmp_path: Path, key: str, value: Any) -> None:
    folder = suite_files(tmp_path, mine={"extends": "base", key: value})
    line = refusal(load_suite, folder, "mine")
    assert line.startswith(f"{folder / 'mine.yaml'}: ")
    assert key[:6] in line


def test_a_suite_that_is_not_there(tmp_path: Path) -> None:
    line = refusal(load_suite, suite_files(tmp_path), "bas")
    assert line.startswith("suites: ")
    assert "did you mean base?" in line


def test_overrides_without_a_suite_that_is_extended(tmp_path: Path) -> None:
    mine = {**BASE, "overrides": {"tasks": {"quiz": {"limit": 5}}}}
    assert "extends" in refusal(load_suite, suite_files(tmp_path, mine=mine), "mine")


def test_single_keys_of_inherited_items(tmp_path: Path) -> None:
    more = {"slices": {"more": {"dataset": "m"}}}
    own = {"extends": "base", "overrides": {"tasks": {"quiz": {"limit": 500}}}, **more}
    top = {"extends": "mine", "overrides": {"tasks": {"quiz": {"group": "g"}}}}
    suite_files(tmp_path, mine=own, top=top)
    suite = load_suite(tmp_path, "top")
    assert (suite.tasks["quiz"].limit, suite.tasks["quiz"].group) == (500, "g")
    assert suite.tasks["quiz"].context == TASK["context"]
    assert list(suite.slices) == ["web", "more"]
    assert suite.slices["web"].tokens == 100
    assert suite.attention == "document"
    assert load_suite(tmp_path, "base").tasks["quiz"].limit == 12_000


@pytest.mark.parametrize("text", table("settings/wrong")["stage_suite"])
def test_suites_of_a_stage(tmp_path: Path, text: str | None) -> None:
    folder = tmp_path / "suites"
    if text is not None:
        folder.mkdir()
        (folder / "base.yaml").write_text(text)
    config = validate_config(content({"suites": str(folder)}), "mine.yaml")
    assert refusal(stage_suite, config, "one").startswith(("mine.yaml: stages.one", str(folder)))
    assert folder.exists() == (text is not None)


WEB, CODE = {"dataset": "made/web", "group": "text"}, {"dataset": "made/code"}
ALL_TEXT = {"tier": "tier2", "members": ["web", "code"]}
GROUPED = Suite.model_validate(
    {"slices": {"web": WEB, "code": CODE}, "groups": {"all_text": ALL_TEXT}}
)


@pytest.mark.parametrize(
    ("tier", "group", "is_there"),
    [
        *(("tier2", group, True) for group in (None, "text", "all_text")),
        *(("tier2", "all_txt", False), ("tier3", None, False), ("tier4", "tone", False)),
    ],
)
def test_an_objective_is_at_what_the_suites_have(
    tier: str, group: str | None, is_there: bool
) -> None:
    objective = Objective.model_validate({**OBJECTIVE, "tier": tier, "group": group})
    if is_there:
        assert settled_objective(objective, GROUPED, "here") == objective
    else:
        assert refusal(settled_objective, objective, GROUPED, "here").startswith("here: ")


# --- names that a table, page or terminal would take for a command -------------------------------

LABELS = table("settings/wrong")["labels"]


@pytest.mark.parametrize("name", LABELS, ids=range(len(LABELS)))
def test_names(tmp_path: Path, name: str) -> None:
    for where, suite in table("settings/wrong")["named"]:
        written(tmp_path, suite.replace("NAME", json.dumps(name)))
        with pytest.raises(ConfigError, match=where):
            load_suite(tmp_path, "mine")
    for raw in (
        {**content({}), "stages": {name: STAGE}},
        content({"runs": {name: {"path": "r"}}}),
        content({}, objective=[{**OBJECTIVE, "group": name}]),
    ):
        refusal(validate_config, raw, "mine.yaml")


# --- YAML ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", table("settings/wrong")["yaml"])
def test_yaml_that_is_refused(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    for read in (read_yaml, load_config):
        assert refusal(read, path).startswith(f"{path}: ")


def test_yaml_that_is_read(tmp_path: Path) -> None:
    """Dates stay text, a byte order mark is none, and a merged key may be set anew."""
    text = "\ufeffa: 2024-01-31\r\nb: &b {x: 1}\r\nc: {<<: *b, x: 2}\r\n"
    expected = {"a": "2024-01-31", "b": {"x": 1}, "c": {"x": 2}}
    assert read_yaml(written(tmp_path, text)) == expected
