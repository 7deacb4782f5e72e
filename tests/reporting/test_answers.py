"""Questions with both sides' answers: flips, `show` and Inspect's logs."""

import json
import subprocess
from pathlib import Path

import pytest

from evaluation.errors import ResultsError
from evaluation.reporting.flips import answers_of, as_text, gains
from evaluation.reporting.inspect_logs import write_logs
from evaluation.reporting.samples import samples_of
from evaluation.settings.plan import StagePlan
from tests.conftest import ROOT
from tests.reporting.pages import write_results, write_task

TIERS = ("slices", "tasks", "probes", "generation_tasks")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> StagePlan:
    plans = write_results(tmp_path_factory.mktemp("answers"), tiers=TIERS, steps=(10, 20))
    for task in ("quiz", "exam"):
        write_task(plans["second"], task, task)
    return plans["second"]


def test_gained_less_lost_is_the_delta(plan: StagePlan) -> None:
    deltas = json.loads((plan.step_folder(20) / "bridge_deltas.json").read_text())["deltas"]
    known = {(d["tier"], d["item"], d["metric"]): d for d in deltas}
    for item in ("quiz", "exam"):
        gain = [*gains(plan.step_folder(20), plan.bridge_folder, "tier3", item).values()]
        delta = known["tier3", item, "delta_acc"]
        assert sum(gain) == pytest.approx(delta["n"] * delta["delta"])
        assert delta["gained"] == sum(one > 0 for one in gain) > 0
        assert delta["gained"] - delta["lost"] == pytest.approx(sum(gain))


@pytest.mark.parametrize(
    ("tier", "item"), [("tier3", "quiz"), ("tier4", "lists"), ("tier5", "sums")]
)
def test_a_flip_has_both_answers_and_its_change(plan: StagePlan, tier: str, item: str) -> None:
    flips = [*answers_of(plan, 20, tier, item, 4, flipped=True)]
    assert 0 < len(flips) <= 8
    for flip in flips:
        assert flip.theirs is not None
        assert flip.ours.id == flip.theirs.id
        change = (flip.ours.credit or 0) - (flip.theirs.credit or 0)
        assert change == pytest.approx(flip.gain)
        assert flip.gain
        text = as_text(flip)
        assert "bridge: [" in text
        assert "answer: [" in text
        for choice in flip.ours.choices:
            assert choice.text in text


def test_another_cache_is_no_text_of_these_questions(tmp_path: Path) -> None:
    plan = write_results(tmp_path, steps=(10,))["second"]
    write_task(plan, "quiz", "another checksum")
    with pytest.raises(ResultsError, match="other questions than those that were scored"):
        [*samples_of(plan, plan.step_folder(10), "tier3", "quiz")]


def test_a_damaged_file_is_refused_by_its_path(tmp_path: Path) -> None:
    plan = write_results(tmp_path, tiers=("probes",), steps=(10,), objective=[])["second"]
    path = plan.step_folder(10) / "tier4_sft_native_generations.jsonl"
    path.write_text(path.read_text()[:-30])
    with pytest.raises(ResultsError, match=f"{plan.step_folder(10)}: answers to lists"):
        [*samples_of(plan, plan.step_folder(10), "tier4", "lists")]


def test_logs_of_inspect_have_every_question_once(plan: StagePlan, tmp_path: Path) -> None:
    logs = {path: json.loads(path.read_text()) for path in write_logs(plan, tmp_path, [20])}
    assert {path.parent.name for path in logs} == {"step_20", "bridge"}
    quiz = next(
        one for path, one in logs.items() if "step_20/2" in str(path) and "quiz" in path.name
    )
    assert quiz["eval"]["model"] == "second/step_20"
    ids = [sample["id"] for sample in quiz["samples"]]
    assert len(ids) == len(set(ids)) == quiz["results"]["total_samples"]
    file = json.loads((plan.step_folder(20) / "tier3_cf.json").read_text())
    mean = quiz["results"]["scores"][0]["metrics"]["acc"]["value"]
    assert mean == pytest.approx(file["tasks"]["quiz"]["accuracy"])
    for sample in quiz["samples"]:
        assert sample["target"] in sample["choices"]
        assert set(sample["metadata"]["log-probabilities"]) == set(sample["choices"])
        assert sample["metadata"]["bridge"]["answer"] in sample["choices"]


READ = """
import sys
from inspect_ai.log import bundle_log_dir, list_eval_logs, read_eval_log
for found in list_eval_logs(sys.argv[1], recursive=True):
    log = read_eval_log(found)
    print(log.eval.task, len(log.samples), log.status)
bundle_log_dir(sys.argv[1], sys.argv[2])
"""


@pytest.mark.long
def test_inspect_itself_reads_them_and_makes_a_site(plan: StagePlan, tmp_path: Path) -> None:
    python = ROOT / ".venv-inspect" / "bin" / "python"
    if not python.exists():
        pytest.skip("no .venv-inspect: make .venv-inspect/.complete")
    paths = [*write_logs(plan, tmp_path / "logs", [20])]
    call = [python, "-c", READ, str(tmp_path / "logs"), str(tmp_path / "site")]
    read = subprocess.run(call, capture_output=True, text=True, check=True)
    assert read.stdout.count(" success\n") == len(paths)
    assert "quiz 400 success" in read.stdout
    assert (tmp_path / "site" / "index.html").is_file()
