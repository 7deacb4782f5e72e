"""Proofs that rooms know a tier that was added to a copy of the package; see test_toy_tier.py.

python -m tests.toy_tier.rooms ROOM FOLDER
"""

import contextlib
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evaluation
from evaluation.bridge.write import write_deltas, write_stage
from evaluation.doctor.examine import examine
from evaluation.errors import EvaluationError, ResultsError
from evaluation.files import write_json, write_parquet
from evaluation.grading.units import write_units
from evaluation.reporting.comparison import folders_as_text
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.reporting.sharing.curves import export_curves
from evaluation.reporting.status import stage_status, status_table
from evaluation.reporting.tables.figures import write_figures
from evaluation.reporting.terminal import bridge_table
from evaluation.results import items
from evaluation.results.deltas_file import StepDeltas
from evaluation.results.read import read_tier
from evaluation.results.stage_files import read_summary
from evaluation.runs.compare import compare_checkpoints
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bridge import folders
from tests.reporting.pages import STEPS, page_data, write_report
from tests.workflow.world import WORDS, World, build_world, sentence, write_rows

BOOKS = ("old", "new")
OBJECTIVES = [
    {"tier": "toy", "want": "improve", "margin": 0.0},
    {"tier": "toy", "want": "keep", "group": "hq", "margin": 0.05},
]


def write_toy(folder: Path, plan: StagePlan, step: int, share: float) -> None:
    """A side's files of the toy tier; riddles that are solved at a share are at any larger one."""
    from evaluation.grading.toy import riddle_units  # of the copy

    tables, entries, counted = [], {}, {}
    for number, book in enumerate(BOOKS):
        solved = np.random.default_rng(number).random(200) < share
        ids = [f"{book}/{i}" for i in range(200)]
        tables.append(pa.table({"book": [book] * 200, "riddle": ids, "solved": solved}))
        group = "hq" if book == "old" else None
        entries[book] = {"solved": float(solved.mean()), "data_checksum": book, "group": group}
        counted[book] = riddle_units(ids, solved)
    write_parquet(folder / "toy_riddles.parquet", pa.concat_tables(tables))
    write_units(TIERS["toy"], folder, counted)
    file = json.loads((folder / "tier2_ppl.json").read_text(encoding="utf-8"))
    header = {key: value for key, value in file.items() if key not in ("slices", "overall")}
    write_json(folder / "toy_riddles.json", {**header, "riddles": entries})


def scored(root: Path) -> dict[str, StagePlan]:
    """Two stages with slices and riddles, the second one compared with its bridge."""
    books = {book: {"dataset": f"some/{book}", "group": "hq"} for book in BOOKS}
    folders.SUITE["riddles"] = {**books, "new": {"dataset": "some/new"}}
    plans = folders.make_plans(root, tiers=("slices", "riddles"), objective=OBJECTIVES)
    first, second = plans["first"], plans["second"]
    sides = [(first, first.step_folder(100), 100, 0.3), (second, second.bridge_folder, 100, 0.3)]
    sides += [(second, second.step_folder(step), step, 0.3 + step / 60) for step in STEPS]
    for plan, folder, step, share in sides:
        folders.write_side(folder, plan, step=step, seed=step)
        write_toy(folder, plan, step, share)
        with contextlib.suppress(FileExistsError):
            plan.checkpoint(step).mkdir(parents=True)
    for step in STEPS:
        write_deltas(second, step)
    write_stage(second, STEPS)
    return plans


def bridge(root: Path) -> None:
    plan = scored(root)["second"]
    found = StepDeltas.read(plan.step_folder(20) / "bridge_deltas.json")
    rows = {row.item: row for row in found.deltas if row.tier == "toy"}
    assert set(rows) == {"old", "new", "overall"}
    assert all(row.metric == "delta_solved" and row.higher_is_better for row in rows.values())
    assert rows["old"].primary
    assert rows["old"].flag == "better"
    assert not rows["overall"].primary
    assert [
        (objective.tier, objective.verdict, objective.items) for objective in found.objectives
    ] == [
        ("toy", "met", ("old", "new")),
        ("toy", "met", ("old",)),
    ]
    assert json.loads((plan.results / "recommendation.json").read_text())["step"] == 30
    said = folders_as_text(compare_checkpoints(plan.step_folder(10), plan.bridge_folder))
    assert [line.split()[:3] for line in said.splitlines() if line.startswith("toy ")] == [
        ["toy", item, "solved,"] for item in ("old", "new", "overall")
    ]
    refused(plan)


def refused(plan: StagePlan) -> None:
    """Other data of the tier, and a damaged file of it, are no less refused than another's."""
    path = plan.step_folder(10) / "toy_riddles.json"
    whole = path.read_text(encoding="utf-8")
    for old, new, said in (
        ('"data_checksum": "old"', '"data_checksum": "other"', "data of book 'old'"),
        ('"solved": 0.', '"solved": 7.', "riddles.old.solved is 7."),
    ):
        assert old in whole
        path.write_text(whole.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(EvaluationError, match=said):
            write_deltas(plan, 10)


def reporting(root: Path) -> None:
    plans = scored(root)
    plan = plans["second"]
    page = write_report(plan, STEPS)
    summary = read_summary(plan.results / "summary.parquet")
    assert {row["item"] for row in summary if row["tier"] == "toy"} == {"old", "new", "overall"}
    assert "## toy: solved" in (plan.results / "summary.md").read_text(encoding="utf-8")
    _page(page_data(page), page.read_text(encoding="utf-8"))
    _front(plans)
    for kind in ("curves", "forest"):
        assert plan.figures[kind, "toy"] in write_figures(plan)
        assert "old" in plan.figures[kind, "toy"].read_text(encoding="utf-8")
    said = bridge_table(plans)
    assert "toy Δsolved, points [95 %]" in said
    status = stage_status(plan, STEPS)
    assert status["subjects"]["20"]["files"]["toy"] == "done"
    assert "toy" in status_table({"second": status}).splitlines()[0]
    (plan.step_folder(20) / "toy_riddles.json").write_text("{}")
    assert stage_status(plan, STEPS)["subjects"]["20"]["files"]["toy"] == "damaged"
    assert export_curves([plan], root / "logs") == len(summary) - _of_bridge(summary)


def _of_bridge(summary: list[dict[str, Any]]) -> int:
    return sum(row["role"] == "bridge" for row in summary)


def _page(data: dict[str, Any], text: str) -> None:
    assert data["tiers"]["toy"]["unit"] == "riddles"
    shown = {one["item"] for one in data["series"] if one["tier"] == "toy"}
    assert shown == {*BOOKS, "overall", "hq (group)"}
    assert {row["item"] for row in data["deltas"] if row["tier"] == "toy"} == {*BOOKS, "overall"}
    moved = [one for one in data["flips"]["steps"]["20"] if one["tier"] == "toy"]
    assert [(one["item"], one["shape"], one["of"]) for one in moved] == [
        ("old", "credit", 200),
        ("new", "credit", 200),
    ]
    assert all(one["gained"] > one["lost"] == 0 for one in moved)
    assert "Riddles (toy), solved" in text
    assert "some/old train (no revision pinned)" in text


def _front(plans: dict[str, StagePlan]) -> None:
    path = write_front_page(plans)
    data = page_data(path)
    assert "toy" in {one["tier"] for one in data["series"]}
    (spark,) = data["sparks"]["second"]
    assert (spark["tier"], spark["metric"]) == ("toy", "solved")
    assert "Riddles (toy), solved: " in path.read_text(encoding="utf-8")


def doctor(root: Path) -> None:
    """The suites' items are counted, and an objective on a group that does not exist is a fault."""
    whole = scored(root)["second"].config.model_dump_json()
    config = root / "config.yaml"
    for group, faults in (("hq", 0), ("nowhere", 1)):
        config.write_text(whole.replace('"group":"hq"', f'"group":"{group}"'), encoding="utf-8")
        checks = {check.name: check for check in examine(config, "second", gate=False)}
        said = [finding.sentence for check in checks.values() for finding in check.findings]
        found = [text for text in said if "toy of the stage's suites has no group" in text]
        assert len(found) == faults, said
        assert faults or "2 riddles" in checks["suites"].summary


def missing_reader(root: Path) -> None:
    """A tier that nobody reads ends in a sentence."""
    plan = scored(root)["second"]
    del items.TIER_MODELS["toy"]
    with pytest.raises(ResultsError, match=r"^toy: nothing reads its toy_riddles\.json"):
        read_tier(plan.bridge_folder, "toy")


WORLD = "riddles"
"""The one stage of the world that is run: two books, and a checkpoint that is its bridge."""


def workflow(root: Path) -> None:
    """A run makes the tier's caches, scores, files, deltas, tables, figures and pages."""
    world = riddle_world(root)
    done = snakemake(world, "prefill", "all")
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    again = snakemake(world, "-n", "all")
    assert "Nothing to be done" in again.stdout + again.stderr
    assert len(list((root / "cache").glob("*/riddles/*/.made/prefill.json"))) == 2
    step = world.results(WORLD, "by_checkpoint", "step_15")
    for folder in (step, world.results(WORLD, "bridge")):
        entries = json.loads((folder / "toy_riddles.json").read_text())["riddles"]
        assert {name: book["items"]["used"] for name, book in entries.items()} == {
            "old": 20,
            "new": 30,
        }
        assert len(pq.read_table(folder / "toy_riddles.parquet")) == 50
    compared(world)
    for command in ("doctor", "status"):
        done = module(world, "evaluation", command, "--config", str(world.config))
        assert done.returncode == 0, done.stdout + done.stderr
    assert "toy" in done.stdout
    lost = ("prefill", "--riddle-book", "lost", "--config", str(world.config))
    done = module(world, "evaluation", *lost)
    assert "no book 'lost' in the suites of riddles; there are old, new" in done.stderr


def compared(world: World) -> None:
    deltas = world.read(WORLD, "by_checkpoint", "step_15", "bridge_deltas.json")
    assert {row["item"] for row in deltas["deltas"]} == {*BOOKS, "overall"}
    assert [objective["tier"] for objective in deltas["objectives"]] == ["toy"]
    assert "toy" in world.results(WORLD, "summary.csv").read_text()
    assert world.results(WORLD, "figures", "toy_forest.svg").is_file()
    for page in (world.results("report.html"), world.results(WORLD, "report.html")):
        assert "toy" in {one["tier"] for one in page_data(page)["series"]}


def riddle_world(root: Path) -> World:
    """The tiny world with nothing but riddles in its suite."""
    world = build_world(root)
    dice = random.Random(0)
    for book, count in (("old", 20), ("new", 30)):
        rows = [
            {"riddle": sentence(dice), "answer": " " + dice.choice(WORDS)} for _ in range(count)
        ]
        write_rows(root / "data" / book / "train.jsonl", rows)
    suite = {"riddles": {book: {"dataset": f"made/{book}"} for book in BOOKS}}
    (root / "suites" / "riddles.yaml").write_text(json.dumps(suite))
    stage = {
        "checkpoints": str(root / "ckpts/stage2"),
        "steps": [15],
        "suites": ["riddles"],
        "bridge": {"path": str(root / "ckpts/stage1/20")},
        "objective": [{"tier": "toy", "want": "keep", "margin": 0.1}],
    }
    mirrors = {f"made/{book}": str(root / "data" / book) for book in BOOKS}
    world.change(stages={WORLD: stage}, mirrors=mirrors)
    return world


def snakemake(world: World, *targets: str) -> subprocess.CompletedProcess[str]:
    """A run of the copy's own workflow."""
    snakefile = Path(evaluation.__file__).parents[1] / "workflow" / "Snakefile"
    files = ("--configfile", str(world.config), "-s", str(snakefile))
    return module(world, "snakemake", *targets, "--cores", "2", *files)


def module(world: World, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of the copy, run in the world's folder."""
    command = [sys.executable, "-m", name, *arguments]
    return subprocess.run(command, cwd=world.folder, capture_output=True, text=True, check=False)


ROOMS: dict[str, Callable[[Path], None]] = {
    "bridge": bridge,
    "reporting": reporting,
    "doctor": doctor,
    "missing_reader": missing_reader,
    "workflow": workflow,
}

if __name__ == "__main__":
    assert not str(evaluation.__file__).startswith(str(Path(__file__).parents[2])), "not the copy"
    ROOMS[sys.argv[1]](Path(sys.argv[2]))
