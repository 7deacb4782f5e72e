"""Configurations and suites that a user may get wrong: the error of each."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.errors import ConfigError
from evaluation.settings.config import load_config, validate_config
from evaluation.settings.objectives import Objective, settled_objective
from evaluation.settings.planning import plan_stage, stage_suite
from evaluation.settings.requested_steps import StepInterval
from evaluation.settings.suites import Suite, load_suite
from evaluation.settings.yaml_files import read_yaml
from tests.tables import cases, table
from tests.workflow.paper import Paper

STAGE = {"checkpoints": "ckpts", "steps": [10], "suites": ["base"]}
OBJECTIVE = {"tier": "tier2", "want": "keep", "margin": 0.1}


def content(top: dict[str, Any], **stage: Any) -> dict[str, Any]:
    return {"results": "r", "cache": "c", "stages": {"one": {**STAGE, **stage}}, **top}


def refusal(read: Callable[..., object], *arguments: object, words: Iterable[str] = ()) -> str:
    """What an error says, which has all of the words."""
    with pytest.raises(ConfigError) as caught:
        read(*arguments)
    sentence = str(caught.value)
    assert [word for word in words if word not in sentence] == [], sentence
    return sentence


def written(folder: Path, text: str) -> Path:
    (folder / "mine.yaml").write_bytes(text.encode("utf-8", "surrogateescape"))
    return folder / "mine.yaml"


def error_of(raw: dict[str, Any], *words: str) -> str:
    return refusal(validate_config, raw, "mine.yaml", words=words)


def wrong(section: str) -> list[tuple[str, Any]]:
    """Each key with each of its values."""
    found = table("settings/wrong")[section]
    return [(key, value) for key, values in found.items() for value in values]


WRONG = [
    *((content({}, **{key: value}), f"one.{key}") for key, value in wrong("stage")),
    *(
        (content({}, objective=[{**OBJECTIVE, key: value}]), key)
        for key, value in wrong("objective_keys")
    ),
    *((content({key: value}), f" {key}") for key, value in wrong("top")),
]


@pytest.mark.parametrize(("raw", "key"), WRONG)
def test_a_configuration(raw: Any, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMPTY", "")
    assert "\n" not in error_of(raw, "mine.yaml: ", key)


LINKS = {"b": ("ckpts", "b/10"), "c": ("ckpts/10", "c"), "ckpts/20": ("10", "ckpts/20")}


@pytest.mark.parametrize("link", LINKS)
def test_a_bridge_to_itself_through_a_link(
    link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ckpts" / "10").mkdir(parents=True)
    target, path = LINKS[link]
    (tmp_path / link).symlink_to(target)
    error_of(content({}, bridge={"path": path}), "zero by construction")


@pytest.mark.parametrize("steps", ["all", "every: 5"])
def test_a_bridge_to_itself_among_found_steps(steps: str) -> None:
    error_of(content({}, steps=steps, bridge={"path": "ckpts/10"}), "one.bridge")


@pytest.mark.parametrize("steps", [[20, 30], "every: 20", {"every": 20}], ids=str)
def test_another_step_of_the_folder_is_a_bridge(steps: Any) -> None:
    config = validate_config(content({}, steps=steps, bridge={"path": "ckpts/10"}), "x")
    assert config.stages["one"].bridge is not None
    assert config.stages["one"].steps in ((20, 30), StepInterval(every=20))


@pytest.mark.parametrize(("text", "word"), cases("settings/wrong", "file"))
def test_a_configuration_by_itself(tmp_path: Path, text: str, word: str) -> None:
    refusal(load_config, written(tmp_path, text), words=[word])


@pytest.mark.parametrize(("text", "words"), cases("settings/wrong", "training_config"))
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


@pytest.mark.parametrize(("key", "value"), wrong("suite"))
def test_a_suite(tmp_path: Path, key: str, value: Any) -> None:
    folder = suite_files(tmp_path, mine={"extends": "base", key: value})
    assert "\n" not in refusal(load_suite, folder, "mine", words=["mine.yaml: ", key[:6]])


def test_a_suite_that_is_not_there(tmp_path: Path) -> None:
    words = ["suites: no such file", "did you mean base?"]
    refusal(load_suite, suite_files(tmp_path), "bas", words=words)


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


@pytest.mark.parametrize(("text", "words"), cases("settings/wrong", "stage_suite"))
def test_suites_of_a_stage(tmp_path: Path, text: str | None, words: str) -> None:
    folder = tmp_path / "suites"
    if text is not None:
        folder.mkdir()
        (folder / "base.yaml").write_text(text)
    config = validate_config(content({"suites": str(folder)}), "mine.yaml")
    refusal(stage_suite, config, "one", words=[words])
    assert folder.exists() == (text is not None)


WEB, CODE = {"dataset": "made/web", "group": "text"}, {"dataset": "made/code"}
ALL_TEXT = {"tier": "tier2", "members": ["web", "code"]}
GROUPED = Suite.model_validate(
    {"slices": {"web": WEB, "code": CODE}, "groups": {"all_text": ALL_TEXT}}
)


@pytest.mark.parametrize(("tier", "group", "sentence"), cases("settings/wrong", "objective"))
def test_an_objective_is_at_what_the_suites_have(
    tier: str, group: str | None, sentence: str | None
) -> None:
    objective = Objective.model_validate({**OBJECTIVE, "tier": tier, "group": group})
    if sentence is None:
        assert settled_objective(objective, GROUPED, "here") == objective
        return
    found = refusal(settled_objective, objective, GROUPED, "here")
    assert found.startswith(f"here: {sentence}")


# --- names that a table, page or terminal would take for a command -------------------------------

LABELS = table("settings/wrong")["labels"]


@pytest.mark.parametrize("name", LABELS, ids=range(len(LABELS)))
@pytest.mark.parametrize(("where", "suite"), cases("settings/wrong", "named"))
def test_names_of_a_suite(tmp_path: Path, where: str, suite: str, name: str) -> None:
    written(tmp_path, suite.replace("NAME", json.dumps(name)))
    refusal(load_suite, tmp_path, "mine", words=[f"{name!r}: a name ", where])


@pytest.mark.parametrize("name", LABELS, ids=range(len(LABELS)))
def test_names_of_stages_and_runs(name: str) -> None:
    for raw in (
        {**content({}), "stages": {name: STAGE}},
        content({"runs": {name: {"path": "r"}}}),
        content({}, objective=[{**OBJECTIVE, "group": name}]),
    ):
        error_of(raw, f"{name!r}: a name ")


# --- YAML ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "words"), cases("settings/yaml_files", "refused"))
def test_yaml_that_is_refused(tmp_path: Path, text: str, words: list[str]) -> None:
    assert "\n" not in refusal(read_yaml, written(tmp_path, text), words=["mine.yaml: ", *words])


@pytest.mark.parametrize(("text", "expected"), cases("settings/yaml_files", "read"))
def test_yaml_that_is_read(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    assert read_yaml(written(tmp_path, text)) == expected


def test_what_is_no_file(tmp_path: Path) -> None:
    for name, words in ((".", "cannot be read"), ("none.yaml", "no such file")):
        refusal(read_yaml, tmp_path / name, words=[words])
