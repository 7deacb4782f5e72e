"""Text that stands in for the slices' datasets."""

from pathlib import Path

import pytest

from demo.texts import DOCUMENTS, STAND_INS, first_documents, python_reference, standard_library
from evaluation.prefill.mirrors import mirror_files
from evaluation.settings.suites import load_suite
from tests.conftest import ROOT

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
