"""Questions that two tasks share, in the files of two checkpoints and in means."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from evaluation.bridge.delta import OVERALL, Delta
from evaluation.bridge.deltas import compare
from evaluation.bridge.paired_binary import credit_difference
from evaluation.bridge.weighted_mean import macro_mean
from evaluation.files import write_parquet
from evaluation.metrics.differences import Differences
from evaluation.metrics.layout import Layout
from evaluation.results.read import read_results
from tests.bridge.folders import SUITE, make_plans, write_side
from tests.bridge.units import write_all_units


def twins(root: Path) -> dict[str, Delta]:
    """Of two tasks that are one by another name, on both sides."""
    suite = {"tasks": dict.fromkeys(("quiz", "quiz_again"), SUITE["tasks"]["quiz"])}
    plan = make_plans(root, suite=suite)["second"]
    folders = plan.step_folder(30), plan.bridge_folder
    for folder, step, skill in zip(folders, (30, 100), (0.1, 0.0), strict=True):
        write_side(folder, plan, step=step, skill=skill, seed=step, items=200)
        _repeat(folder)
    found = compare(*(read_results(one, ["tier3"]) for one in folders))
    return {one.item: one for one in found if one.metric == "delta_acc"}


def _repeat(folder: Path) -> None:
    path, summary = folder / "tier3_cf_candidates.parquet", folder / "tier3_cf.json"
    table = pq.read_table(path)
    first = table.filter(pc.equal(table["task"], "quiz"))
    first = first.append_column("question", first["item"])
    names = pa.array(["quiz_again"] * first.num_rows)
    write_parquet(path, pa.concat_tables([first, first.set_column(0, "task", names)]))
    content = json.loads(summary.read_text())
    content["tasks"]["quiz_again"] = content["tasks"]["quiz"]
    summary.write_text(json.dumps(content))
    write_all_units(folder)


def test_a_task_under_two_names_is_one(tmp_path: Path) -> None:
    found = twins(tmp_path)
    alone, both = found["quiz"].estimate, found[OVERALL].estimate
    assert both.value == pytest.approx(alone.value)
    assert both.se == pytest.approx(alone.se)
    assert (both.low, both.high) == pytest.approx((alone.low, alone.high), rel=0.05)


def test_a_mean_of_exact_tests_on_the_same_questions_reaches_no_further_than_its_widest() -> None:
    """Three of 60 questions changed, one of them also in a task of the first 20."""
    differences, ids = np.zeros(60), [str(i) for i in range(60)]
    differences[[3, 30, 50]] = -1.0, 1.0, 1.0
    passages = [str(i // 4) for i in range(60)]
    parts = {
        name: credit_difference(
            Differences(
                kind="credit",
                amounts=differences[:n],
                layout=Layout(n, own and own[:n], None, [ids[:n]]),
                passes=True,
            )
        )
        for name, n, own in (("all", 60, passages), ("small", 20, passages), ("alone", 60, None))
    }
    mean = macro_mean(parts)
    assert all(part.counts is not None for part in parts.values())
    assert parts["small"].low <= mean.low < mean.high <= parts["small"].high
