"""Results in lm-evaluation-harness' files: the same numbers, and all samples."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from evaluation.reporting.sharing.lm_eval_files import write_lm_eval_files
from evaluation.settings.plan import StagePlan
from tests.reporting.conftest import command
from tests.workflow.world import ANSWERED, FIRST_LETTER, World, ask_for_answers, copy_world


def exported(plan: StagePlan, step: int, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The file of results, and the lines of samples by task."""
    (path,) = write_lm_eval_files([plan], [step], folder, "lab")
    samples = {
        file.name.split("_2")[0].removeprefix("samples_"): file.read_text().splitlines()
        for file in path.parent.glob("samples_*.jsonl")
    }
    return json.loads(path.read_text()), {n: [*map(json.loads, t)] for n, t in samples.items()}


def test_values_and_samples_are_those_of_the_results(tiny_world: World, tmp_path: Path) -> None:
    content, samples = exported(tiny_world.plans["stage2"], 15, tmp_path)
    table = pq.read_table(tiny_world.results("stage2", "summary.parquet")).to_pylist()
    rows = {(row["item"], row["metric"]): row for row in table if row["step"] == 15}
    assert content["config"]["model_args"]["pretrained"].startswith("lab/")
    accuracies = 0
    for name, values in content["results"].items():
        if (name, "nats_per_token") in rows:
            assert values["nats_per_token,none"] == rows[name, "nats_per_token"]["value"]
            assert len(samples[name]) == rows[name, "nats_per_token"]["n"]
        if "acc,none" not in values:
            continue
        credits = [line["acc"] for line in samples[name]]
        assert len(credits) == content["n-samples"][name]["effective"]
        assert sum(credits) / len(credits) == pytest.approx(values["acc,none"])
        assert content["higher_is_better"][name]["acc"]
        accuracies += 1
        for line in samples[name]:
            assert set(line["metrics"]) <= line.keys()
            assert line["arguments"]["gen_args_0"].keys() == {"arg_0", "arg_1"}
            assert len(line["filtered_resps"]) == len(line["doc"]["choices"])
    assert accuracies


def test_a_prompts_line_has_all_its_samples(prefilled_world: World, tmp_path: Path) -> None:
    world = copy_world(prefilled_world, tmp_path / "world")
    task = {**ANSWERED, "verifiers": {"strict": FIRST_LETTER}, "max_new_tokens": 4, "limit": 2}
    plan = ask_for_answers(world, {"sums": task})
    command("score", "--stage", "stage2", "--step", "5", config=world.config)
    command("tables", "--stage", "stage2", config=world.config)
    content, samples = exported(plan, 5, tmp_path / "shared")
    config = content["configs"]["sums"]
    assert config["output_type"] == "generate_until"
    assert config["generation_kwargs"]["max_gen_toks"] == 4
    assert len(samples["sums"]) == 2
    for line in samples["sums"]:
        assert len(line["resps"][0]) == len(line["filtered_resps"])
        assert 0 <= line["strict"] <= 1
