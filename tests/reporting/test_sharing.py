"""Results in others' formats: the same numbers and samples, and files that their own readers accept."""

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from evaluation.errors import ConfigError, ResultsError
from evaluation.reporting.sharing.every_eval_ever import Publisher, write_every_eval_ever
from evaluation.reporting.sharing.hub_results import HubTask, write_hub_results
from evaluation.reporting.sharing.lm_eval_files import write_lm_eval_files
from evaluation.reporting.sharing.shared_results import (
    SharedCheckpoint,
    SharedItem,
    scored_candidates,
    shared_checkpoint,
)
from evaluation.results.verified_files import OtherEngine
from evaluation.version import __version__
from tests.conftest import ROOT
from tests.reporting.conftest import command
from tests.workflow.world import ANSWERED, FIRST_LETTER, World, ask_for_answers, copy_world

NOW = 1_780_000_000
READERS = ROOT / ".venv-sharing/bin/python"
"""Python of an environment with the formats' own readers (`make .venv-sharing/.complete`)."""


@pytest.fixture(scope="module")
def checkpoint(tiny_world: World) -> SharedCheckpoint:
    plan = tiny_world.plans["stage2"]
    assert scored_candidates(plan) == [5, 15]
    return shared_checkpoint(plan, 15)


@pytest.fixture(scope="module")
def rows(tiny_world: World) -> list[dict[str, Any]]:
    """The summary's rows of the same checkpoint, without means over items."""
    table = pq.read_table(tiny_world.results("stage2", "summary.parquet")).to_pylist()
    wholes = {"overall"} | {row["item"] for row in table if row["item"].startswith("group")}
    return [row for row in table if row["step"] == 15 and row["item"] not in wholes]


@pytest.fixture(scope="module")
def shared(checkpoint: SharedCheckpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    write_every_eval_ever(checkpoint, folder, Publisher(organization="Our Lab", now=NOW))
    return folder


def aggregates(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("data/*/*/*/*.json"))]


def test_every_eval_ever_has_all_values(shared: Path, rows: list[dict[str, Any]]) -> None:
    found = {
        (one["evaluation_name"], one["metric_config"]["metric_id"]): one["score_details"]
        for content in aggregates(shared)
        for one in content["evaluation_results"]
    }
    assert {key: one["score"] for key, one in found.items()} == {
        (f"{row['tier']}_{row['item']}", row["metric"]): row["value"] for row in rows
    }
    bounded = next(row for row in rows if row["low"] is not None)
    interval = found[f"{bounded['tier']}_{bounded['item']}", bounded["metric"]]["uncertainty"]
    assert interval["confidence_interval"]["lower"] == bounded["low"]


def test_every_eval_ever_has_all_samples(shared: Path) -> None:
    for content in aggregates(shared):
        if content["evaluation_id"].startswith("tier2"):
            assert "detailed_evaluation_results" not in content
            continue
        details = content["detailed_evaluation_results"]
        raw = (shared / details["file_path"]).read_bytes()
        assert hashlib.sha256(raw).hexdigest() == details["checksum"]
        lines = [json.loads(line) for line in raw.splitlines()]
        assert len(lines) == details["total_rows"]
        head = content["evaluation_results"][0]
        scores = [line["evaluation"]["score"] for line in lines]
        if head["evaluation_name"].startswith(("tier3", "tier5")):
            assert sum(scores) / len(scores) == pytest.approx(head["score_details"]["score"])
        assert {line["evaluation_id"] for line in lines} == {content["evaluation_id"]}


def test_an_export_can_be_repeated(shared: Path, checkpoint: SharedCheckpoint) -> None:
    before = {path: path.read_bytes() for path in shared.rglob("*.json*")}
    write_every_eval_ever(checkpoint, shared, Publisher(organization="Our Lab", now=NOW))
    assert {path: path.read_bytes() for path in shared.rglob("*.json*")} == before


def test_lm_eval_files(
    checkpoint: SharedCheckpoint, tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    path = write_lm_eval_files(checkpoint, tmp_path, NOW)
    content = json.loads(path.read_text())
    slices = {row["item"] for row in rows if row["tier"] == "tier2"}
    for name, values in content["results"].items():
        if name in slices:
            assert values["nats_per_token,none"] == next(
                row["value"]
                for row in rows
                if (row["item"], row["metric"]) == (name, "nats_per_token")
            )
        (samples,) = path.parent.glob(f"samples_{name}_*.jsonl")
        for line in map(json.loads, samples.read_text().splitlines()):
            assert set(line["metrics"]) <= line.keys()
            assert line["arguments"]["gen_args_0"].keys() == {"arg_0", "arg_1"}
    accuracies = {
        name: (values["acc,none"], content["n-samples"][name]["effective"])
        for name, values in content["results"].items()
        if "acc,none" in values
    }
    for name, (accuracy, count) in accuracies.items():
        (samples,) = path.parent.glob(f"samples_{name}_*.jsonl")
        credits = [json.loads(line)["acc"] for line in samples.read_text().splitlines()]
        assert len(credits) == count
        assert sum(credits) / len(credits) == pytest.approx(accuracy)
    assert accuracies


def test_hub_results_are_what_the_hub_documents(
    checkpoint: SharedCheckpoint, tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    row = next(row for row in rows if row["metric"] == "acc")
    name, task = HubTask.parse(f"{row['item']}=owner/quiz:quiz")
    (path,) = write_hub_results(checkpoint, tmp_path, {name: task}, NOW)
    assert path.parent.name == ".eval_results"
    (entry,) = yaml.safe_load(path.read_text())
    assert entry["dataset"] == {"id": "owner/quiz", "task_id": "quiz"}
    assert entry["value"] == pytest.approx(100 * row["value"], abs=0.005)
    assert entry["date"] == "2026-05-28"
    with pytest.raises(ConfigError, match="no item 'none'"):
        write_hub_results(checkpoint, tmp_path, {"none": task}, NOW)


SGLANG = OtherEngine(name="sglang", version="0.5", imported="a.jsonl")
VLLM = OtherEngine(name="vllm", version="0.24.0", asked=8, equal=8)
NAMELESS = OtherEngine(name="another engine", imported="b.jsonl")


@pytest.fixture(scope="module")
def answered(prefilled_world: World, tmp_path_factory: pytest.TempPathFactory) -> SharedCheckpoint:
    """A checkpoint of which two prompts were completed, too."""
    world = copy_world(prefilled_world, tmp_path_factory.mktemp("answered") / "world")
    task = {**ANSWERED, "verifiers": {"strict": FIRST_LETTER}, "max_new_tokens": 4, "limit": 2}
    plan = ask_for_answers(world, {"sums": task})
    command("score", "--stage", "stage2", "--step", "5", config=world.config)
    command("tables", "--stage", "stage2", config=world.config)
    return shared_checkpoint(plan, 5)


def by_engine(item: SharedItem, engine: OtherEngine) -> SharedItem:
    entry = item.result.entry.model_copy(update={"engine": engine})
    items = {**item.tier.items, item.name: replace(item.result, entry=entry)}
    return replace(item, tier=replace(item.tier, items=items))


@pytest.mark.parametrize("engine", [SGLANG, VLLM, NAMELESS], ids=lambda engine: engine.name)
def test_completions_are_told_to_be_of_the_engine_that_wrote_them(
    answered: SharedCheckpoint, tmp_path: Path, engine: OtherEngine
) -> None:
    """Only the task's own: other items of the same checkpoint stay those of the built-in engine."""
    (task,) = (item for item in answered.items if item.tier.tier.name == "tier5")
    items = tuple(by_engine(item, engine) if item is task else item for item in answered.items)
    shared = replace(answered, items=items)
    expected = {"name": engine.name, **({"version": engine.version} if engine.version else {})}

    write_every_eval_ever(shared, tmp_path, Publisher(organization="Lab", now=NOW))
    for content in aggregates(tmp_path):
        model, details = content["model_info"], content["model_info"]["additional_details"]
        if content["evaluation_id"].startswith("tier5"):
            assert model["inference_engine"] == expected
            assert details.get("completions_imported_from") == engine.imported
            assert ("dtype" in details) is (engine.imported is None)
        else:
            assert model["inference_engine"] == {
                "name": "staged-evaluation",
                "version": __version__,
            }
            assert "dtype" in details

    configs = json.loads(write_lm_eval_files(shared, tmp_path, NOW).read_text())["configs"]
    for name, config in configs.items():
        keys = ["inference_engine", "inference_engine_version"]
        given = zip(keys, expected.values(), strict=False) if name == task.label else ()
        about = {k: v for k, v in config["metadata"].items() if k.startswith("inference_engine")}
        assert about == dict(given)

    (path,) = write_hub_results(shared, tmp_path, {task.label: HubTask("owner/d", "t")}, NOW)
    (entry,) = yaml.safe_load(path.read_text())
    assert f"completions by {' '.join(expected.values())}," in entry["notes"]


def test_no_engine_is_named_for_what_an_external_program_scored(
    checkpoint: SharedCheckpoint, tmp_path: Path
) -> None:
    def external(item: SharedItem) -> SharedItem:
        file = item.tier.file.model_copy(update={"protocol": "external: score.sh"})
        return replace(item, tier=replace(item.tier, file=file))

    shared = replace(checkpoint, items=tuple(map(external, checkpoint.items)))
    write_every_eval_ever(shared, tmp_path, Publisher(organization="Lab", now=NOW))
    assert not any("inference_engine" in one["model_info"] for one in aggregates(tmp_path))


@pytest.mark.parametrize("text", ["x", "x=y", "x=owner/data", "=owner/data:t", "x=data:t"])
def test_a_benchmark_that_is_not_named_whole(text: str) -> None:
    with pytest.raises(ConfigError, match="write NAME=OWNER/DATASET:TASK"):
        HubTask.parse(text)


def test_a_step_without_results(checkpoint: SharedCheckpoint) -> None:
    with pytest.raises(ResultsError, match=r"has no step 7"):
        shared_checkpoint(checkpoint.plan, 7)


@pytest.mark.long
@pytest.mark.skipif(not READERS.exists(), reason="make .venv-sharing/.complete (Python 3.12)")
def test_the_formats_own_readers_accept_the_files(
    shared: Path, checkpoint: SharedCheckpoint, tmp_path: Path
) -> None:
    def run(*arguments: str, where: Path) -> None:
        line = [str(READERS), "-m", "every_eval_ever", *arguments]
        ended = subprocess.run(line, cwd=where, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def files(folder: Path) -> list[str]:
        return [str(path.relative_to(folder)) for path in sorted(folder.glob("data/**/*.json*"))]

    run("validate", *files(shared), where=shared)
    path = write_lm_eval_files(checkpoint, tmp_path, NOW)
    options = ("--source_organization_name", "Lab", "--include_samples", "--output_dir", "data")
    run("convert", "lm_eval", "--log_path", str(path), *options, where=tmp_path)
    assert len(files(tmp_path)) == 2 * len(checkpoint.items)
    run("validate", *files(tmp_path), where=tmp_path)
