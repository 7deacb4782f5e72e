"""What a stage may be called and where its results may lie: it works, or one sentence says why not."""

import re
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import ConfigError
from evaluation.settings.config import load_config
from evaluation.settings.names import PREFILL, TARGETS
from tests.histories.warm import well
from tests.tables import cases, table
from tests.workflow.paper import Paper, refused


@pytest.mark.parametrize("names", table("workflow/names")["refused"])
def test_refused(tmp_path: Path, names: list[str]) -> None:
    paper = Paper(tmp_path / "paper", {name: {} for name in names})
    with pytest.raises(ConfigError) as caught:
        load_config(paper.config)
    assert "\n" not in str(caught.value)
    assert "config.yaml: stages" in str(caught.value)


@pytest.mark.parametrize("names", table("workflow/names")["works"], ids=" ".join)
def test_works(tmp_path: Path, names: list[str]) -> None:
    """Every stage has a bridge and shared jobs; each name is a target, also of a job by itself."""
    first, *others = names
    bridged = {"bridge": {"stage": first}} if others else {"bridge": {"path": "ckpts/0/5"}}
    paper = Paper(tmp_path / "paper", {first: {}, **dict.fromkeys(others, bridged)})
    done = well(paper.snakemake("-n", "--set-resources", "shared_scoring:checkpoints=2"))
    rules = {line.partition(":")[0].split(" ")[0] for line in done.stdout.splitlines()}
    assert {f"score_{name}_from_10" for name in names} <= rules
    assert {f"score_{name}_bridge" for name in others} <= rules
    done = well(paper.snakemake(names[-1], "-n"))
    assert f"\nscore_{names[-1]} step_10: missing" in done.stdout


def test_all_rules_are_those_that_names_are_checked_against(tmp_path: Path) -> None:
    paper = Paper(tmp_path / "paper", {"one": {}, "two": {"bridge": {"stage": "one"}}})
    done = well(paper.snakemake("--list-rules", "--set-resources", "shared_scoring:checkpoints=2"))
    own = r"(?:[a-z_]+_)?(?:one|two)(?:_bridge|_from_\d+)?"
    rules = set(done.stdout.split())
    assert "score_two_bridge" in rules
    shared = {rule for rule in rules if not re.fullmatch(own, rule)}
    assert shared | {"comparison"} == {*TARGETS, *PREFILL}  # that one only beside other `runs:`


@pytest.mark.parametrize(("stages", "top", "wrong"), cases("workflow/names", "folders"))
def test_folders(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stages: dict[str, dict[str, Any]],
    top: dict[str, Any],
    wrong: str,
) -> None:
    paper = Paper(tmp_path / "paper", stages, top)
    (paper.folder / "link").symlink_to("out")
    monkeypatch.chdir(paper.folder)
    with pytest.raises(ConfigError, match=rf"config\.yaml: stages\.{wrong}\.results: "):
        load_config(paper.config)


PATHS = ["""a b:c'd"e%f;g&h#i$ j*k[l]m=n(o)é""", "x//y", "./x", "x/~a"]


@pytest.mark.parametrize("path", PATHS)
def test_odd_paths_work(tmp_path: Path, path: str) -> None:
    paper = Paper(tmp_path / "paper", {"one": {}}, {"results": path, "cache": f"c/{path}"})
    well(paper.snakemake("-n"))


def test_what_snakemake_lets_pass_is_refused(tmp_path: Path) -> None:
    paper = Paper(tmp_path / "paper", {"one": {}})
    paper.config.write_text(paper.config.read_text() + "cache: cache\ncache: other\n")
    said = refused(paper.snakemake("-n"))
    assert "config.yaml: not valid YAML" in said
    assert "the key 'cache' stands in line" in said
