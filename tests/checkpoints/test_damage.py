"""Damaged and half-written checkpoints: one sentence that names the file, never wrong values."""

import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.__main__ import main
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint
from tests.checkpoints.damage import damage, norm
from tests.checkpoints.huggingface import save_model
from tests.checkpoints.nanotron import age, llama, make_checkpoint
from tests.tables import cases


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "7"
    make_checkpoint(folder, llama(), tp=2)
    return folder


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face folder with an index."""
    folder = tmp_path_factory.mktemp("sharded") / "hf"
    save_model(folder).save_pretrained(folder, max_shard_size="20KB")
    (folder / "model.safetensors").unlink()
    (folder / "generation_config.json").unlink()
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "7"))


KINDS = {
    "incomplete": IncompleteCheckpoint,
    "unsound": CheckpointError,
    "unsupported": UnsupportedCheckpoint,
}


@pytest.mark.parametrize(
    ("line", "named", "kind"),
    [
        pytest.param(*one.values, kind, id=one.id)
        for section, kind in KINDS.items()
        for one in cases("checkpoints/damage", section)
    ],
)
def test_damage_is_one_sentence(
    folder: Path,
    line: str,
    named: str,
    kind: type[CheckpointError],
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(folder, line)
    with pytest.raises(kind, match=named) as raised:
        check_complete(open_checkpoint(folder))
    assert len(str(raised.value)) < 700
    assert main(["inspect", str(folder)]) == 1
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    # How deep Python was when it gave up depends on who called.
    assert line.partition("exceeded")[0] == f"error: {raised.value}".partition("exceeded")[0]


# The copy is one for all examples.
RELAXED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def damages(draw: st.DrawFn, folder: Path) -> None:
    """Cut, flip, remove, extend or replace any file; of weights the header, as any value may be right."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = draw(st.sampled_from(files))
    whole = path.read_bytes()
    is_weights = path.suffix == ".safetensors"
    end = 8 + int.from_bytes(whole[:8], "little") if is_weights else len(whole)
    act = draw(st.sampled_from(["cut", "flip", "flip", "remove", "extend", "replace"]))
    if act == "cut":
        path.write_bytes(whole[: draw(st.integers(0, len(whole) - 1))])
    elif act == "flip":
        at = draw(st.integers(0, end - 1))
        path.write_bytes(whole[:at] + draw(st.binary(min_size=1, max_size=1)) + whole[at + 1 :])
    elif act == "remove":
        path.unlink()
    elif act == "extend":
        path.write_bytes(whole + draw(st.sampled_from([b"\0", b"x", whole])))
    else:
        other = draw(st.sampled_from([file for file in files if file.suffix != path.suffix]))
        path.write_bytes(other.read_bytes())


@settings(RELAXED, max_examples=120)
@given(data=st.data())
@pytest.mark.parametrize("kind", ["nanotron", "huggingface"])
def test_damage_is_refused_or_harmless(
    kind: str, sound: Path, sharded: Path, tmp_path: Path, data: st.DataObject
) -> None:
    """One sentence that names the folder, or every weight as it was."""
    whole = sound if kind == "nanotron" else sharded
    folder = tmp_path / whole.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    data.draw(damages(folder))
    age(folder)
    loaded = expected = load_model(open_checkpoint(whole)).state_dict()
    said = str(folder)
    try:
        loaded = load_model(open_checkpoint(folder)).state_dict()
    except CheckpointError as error:
        said = str(error)
    assert str(folder) in said
    assert said.isprintable()
    assert loaded.keys() == expected.keys()
    assert all(torch.equal(value, expected[name]) for name, value in loaded.items())


def test_pickles_are_never_opened(folder: Path) -> None:
    for name in ("random/a.pt", "optimizer/b.pt", "lr_scheduler.pt", "model/model/c.pt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"\x80\x04\x95")
    load_model(open_checkpoint(folder))


def test_a_writer_at_work_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, content = norm(folder), norm(folder).read_bytes()
    path.write_bytes(content)
    checkpoint = open_checkpoint(folder)
    check_complete(checkpoint)  # fresh, but nothing changes
    monkeypatch.setattr("time.sleep", lambda _: path.write_bytes(content[:-1]))
    with pytest.raises(IncompleteCheckpoint, match="being written"):
        check_complete(checkpoint)
