"""What a stage may be called and where its results may lie: it works, or one sentence says why not."""

import re
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import ConfigError
from evaluation.settings.config import load_config
from evaluation.settings.names import KINDS, PREFILL, TARGETS
from tests.histories.warm import well
from tests.workflow.paper import Paper

REFUSED: list[tuple[list[str], list[str]]] = [
    (["all"], ["stages.all", "a rule 'all' of its own"]),
    (["prefill"], ["stages.prefill", "a rule 'prefill' of its own"]),
    (["prefill_task"], ["a rule 'prefill_task' of its own"]),
    (["stage1", "stage1_bridge"], ["stages.stage1_bridge", "a rule of stage stage1 has this name"]),
    (["stage1", "stage1_from_10"], ["stages.stage1_from_10", "a rule of stage stage1"]),
    (["a", "score_a"], ["stages.score_a", "a rule of stage a"]),
    (["a", "check_a"], ["stages.check_a", "a rule of stage a"]),
    (["a", "tables_a"], ["stages.tables_a", "a rule of stage a"]),
    (["a", "deltas_a"], ["stages.deltas_a", "a rule of stage a"]),
    (["stage1", "Stage1"], ["stages.Stage1", "stage1", "upper and lower case"]),
    (["scores"], ["stages.scores", "results of all stages"]),
    (["Retention.csv"], ["results of all stages"]),
    ([".config"], ["'.config'", "begins with a letter or digit"]),
    ([".."], ["'..'", "begins with a letter or digit"]),
    (["a/b"], ["'a/b'", "made of letters"]),
    (["a b"], ["'a b'", "made of letters"]),
    (["_a"], ["'_a'", "begins with"]),
    (["é"], ["'é'", "made of letters"]),
    ([""], ["''", "begins with"]),
    (["a\n"], [r"'a\n'", "made of letters"]),
    (["a" * 81], ["no longer than 80"]),
]

WORKS: list[list[str]] = [
    ["ablation_A", "ablation_AB"],
    ["stage1", "stage10", "stage1_mini", "stage1.mini"],
    ["prefill2", "prefill_x", "allx"],
    ["score_b", "check_point", "shared_scoring"],
    ["1", "10", "0x"],
    ["class", "None", "rule", "input"],
    ["step_10", "by_checkpoint", "stage1_from", "stage1_from_x"],
    ["a" * 80],
]


@pytest.mark.parametrize(
    ("names", "words"), REFUSED, ids=[" ".join(c[0]) or "empty" for c in REFUSED]
)
def test_refused(tmp_path: Path, names: list[str], words: list[str]) -> None:
    paper = Paper(tmp_path / "paper", {name: {} for name in names})
    with pytest.raises(ConfigError) as caught:
        load_config(paper.config)
    assert "\n" not in str(caught.value)
    for word in ["config.yaml: ", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("names", WORKS, ids=" ".join)
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
    own = rf"(?:(?:{'|'.join(KINDS)})_)?(?:one|two)(?:_bridge|_from_\d+)?"
    rules = set(done.stdout.split())
    assert "score_two_bridge" in rules
    shared = {rule for rule in rules if not re.fullmatch(own, rule)}
    assert shared | {"comparison"} == {*TARGETS, *PREFILL}  # that one only beside other `runs:`


FOLDERS: list[tuple[str, dict[str, dict[str, Any]], dict[str, Any], list[str]]] = [
    ("one for two", {"a": {"results": "out"}, "b": {"results": "out"}}, {}, ["stages.b.results", "is the folder of stage a"]),
    ("by another path", {"a": {"results": "out"}, "b": {"results": "./x/../out/"}}, {}, ["stages.b.results", "is the folder of stage a"]),
    ("through a link", {"a": {"results": "out"}, "b": {"results": "link"}}, {}, ["is the folder of stage a"]),
    ("another's default", {"a": {}, "b": {"results": "results/a"}}, {}, ["is the folder of stage a"]),
    ("inside another's", {"a": {}, "b": {"results": "results/a/b"}}, {}, ["lies inside the folder of stage a"]),
    ("around another's", {"a": {"results": "out/a"}, "b": {"results": "out"}}, {}, ["stage a lies inside out"]),
    ("all results", {"a": {"results": "results"}}, {}, ["is the folder of all results"]),
    ("the scores", {"a": {"results": "results/scores"}}, {}, ["keep their scores"]),
    ("inside the scores", {"a": {"results": "results/scores/a"}}, {}, ["keep their scores"]),
    ("hidden settings", {"a": {"results": "results/.config"}}, {}, ["keep their scores"]),
    ("the cache", {"a": {"results": "cache"}}, {}, ["lies in the cache cache"]),
    ("inside the cache", {"a": {"results": "cache/a"}}, {}, ["lies in the cache"]),
    ("all inside the cache", {"a": {}}, {"results": "cache/results"}, ["stages.a.results", "lies in the cache"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("stages", "top", "words"), [c[1:] for c in FOLDERS], ids=[c[0] for c in FOLDERS]
)
def test_folders(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stages: dict[str, dict[str, Any]],
    top: dict[str, Any],
    words: list[str],
) -> None:
    paper = Paper(tmp_path / "paper", stages, top)
    (paper.folder / "link").symlink_to("out")
    monkeypatch.chdir(paper.folder)
    with pytest.raises(ConfigError) as caught:
        load_config(paper.config)
    for word in words:
        assert word in str(caught.value)


PATHS = ["""a b:c'd"e%f;g&h#i$ j*k[l]m=n(o)é""", "x//y", "./x", "x/~a"]


@pytest.mark.parametrize("path", PATHS)
def test_odd_paths_work(tmp_path: Path, path: str) -> None:
    paper = Paper(tmp_path / "paper", {"one": {}}, {"results": path, "cache": f"c/{path}"})
    well(paper.snakemake("-n"))


DUPLICATE = "cache: cache\ncache: other\n"


def test_what_snakemake_lets_pass_is_refused(tmp_path: Path) -> None:
    paper = Paper(tmp_path / "paper", {"one": {}})
    paper.config.write_text(paper.config.read_text() + DUPLICATE)
    done = paper.snakemake("-n")
    assert done.returncode == 1
    assert "config.yaml: line" in done.stdout + done.stderr
    assert "the key 'cache' stands in line" in done.stdout + done.stderr
