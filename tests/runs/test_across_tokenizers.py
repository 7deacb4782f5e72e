"""Two runs with tokenizers of their own: what no token is counted in is compared, and nothing else."""

import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evaluation.bridge.delta import OVERALL
from evaluation.bridge.deltas import compare
from evaluation.errors import BridgeError
from evaluation.results.read import Results, read_results
from evaluation.runs.compare import compare_runs
from evaluation.runs.find import find_run
from evaluation.runs.matching import Matching
from tests.bridge.folders import edit_json, edited
from tests.runs.folders import write_run

OTHER = {"tokenizer": {"name": "another", "fingerprint": "another"}}
TIERS = ("tier2", "tier3", "tier4")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Results]:
    """The second side has another tokenizer, which cuts the slices into fewer blocks."""
    root = tmp_path_factory.mktemp("tokenizers")
    plans = [
        write_run(root / "a", number=1, steps=(10,)),
        write_run(root / "b", number=2, steps=(10,), blocks=31, **OTHER),
    ]
    other = plans[1].step_folder(10)
    for section, file in (("tasks", "tier3_cf.json"), ("slices", "tier2_ppl.json")):
        with edited(other / file) as content:
            for entry in content[section].values():
                entry["data_checksum"] = {"other": "tokens"}
    edit_json(other / "tier4_sft_native.json", data_checksum={"q": "2"})
    first, second = (read_results(plan.step_folder(10), TIERS) for plan in plans)
    return first, second


def test_only_what_no_token_is_counted_in(sides: tuple[Results, Results]) -> None:
    deltas = compare(*sides, across_tokenizers=True)
    metrics = {delta.metric.removeprefix("delta_") for delta in deltas}
    assert metrics.isdisjoint({"nats_per_token", "ppl"})
    assert {"bits_per_byte", "acc", "gold_bits_per_byte", "all_checks_pass_rate"} <= metrics
    family = [d.item for d in deltas if d.tier == "tier2" and d.primary]
    assert family == ["web", "code"]
    assert all(d.p_holm is not None and d.flag for d in deltas if d.primary)


def test_bits_per_byte_by_hand(sides: tuple[Results, Results]) -> None:
    """Totals of each side's blocks; the standard error by the delta method, added up."""
    delta = next(d for d in compare(*sides, across_tokenizers=True) if d.item == "web")
    values, variances = [], []
    for side in sides:
        rows = pq.read_table(side.folder / "tier2_ppl_blocks.parquet").to_pandas()
        web = rows[rows["slice"] == "web"]
        bits, size = web["nats"].to_numpy() / math.log(2), web["bytes"].to_numpy()
        ratio, n = bits.sum() / size.sum(), len(size)
        values.append(ratio)
        variances.append(n / (n - 1) * (((bits - ratio * size) / size.sum()) ** 2).sum())
    assert delta.estimate.value == pytest.approx(values[0] - values[1])
    assert delta.estimate.se >= math.sqrt(sum(variances)) * (1 - 1e-9)  # blocks may hang together
    assert delta.estimate.n == 40 + 31


def test_the_notes_say_why(sides: tuple[Results, Results]) -> None:
    runs = [find_run(name, side.folder.parents[1]) for name, side in zip("ab", sides, strict=True)]
    stage = compare_runs(*runs, Matching()).stages[0]
    assert stage.across_tokenizers
    assert any("tokenizers differ, so only bits per byte" in note for note in stage.notes)
    overall = {one.metric for one in stage.leads if (one.tier, one.item) == ("tier2", OVERALL)}
    assert overall == {"delta_bits_per_byte"}


def test_other_questions_are_refused(sides: tuple[Results, Results], tmp_path: Path) -> None:
    fewer = write_run(tmp_path, number=2, steps=(10,), items=150, **OTHER)
    with pytest.raises(BridgeError, match=r"questions of 'quiz': the items of .* \(200\)"):
        compare(sides[0], read_results(fewer.step_folder(10), TIERS), across_tokenizers=True)
