"""Damaged and half-written checkpoints: one sentence that names the file, never wrong values."""

import os
import pickle
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.__main__ import main
from evaluation.checkpoints import shards
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint
from tests.bad_input.mutations import as_json, damaged, mutated, written
from tests.checkpoints.damage import config, damage, norm, qkv
from tests.checkpoints.nanotron import age, llama, make_checkpoint, rewrite
from tests.tables import cases


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "7"
    make_checkpoint(folder, llama(), tp=2)
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


@settings(RELAXED, max_examples=60)
@given(part=st.floats(0, 1, exclude_max=True), sharded=st.booleans())
def test_truncated_anywhere(sound: Path, folder: Path, part: float, sharded: bool) -> None:
    shard = qkv if sharded else norm
    whole = shard(sound).read_bytes()
    shard(folder).write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(IncompleteCheckpoint, match=shard(folder).name):
        check_complete(open_checkpoint(folder))
    shard(folder).write_bytes(whole)


@settings(RELAXED, max_examples=150)
@given(data=st.data())
def test_a_flipped_header_is_refused_or_harmless(
    sound: Path, folder: Path, data: st.DataObject
) -> None:
    """Any byte of the header may change: either one sentence, or every weight as it was."""
    whole = bytearray(qkv(sound).read_bytes())
    length = int.from_bytes(whole[:8], "little")
    whole[data.draw(st.integers(0, 8 + length - 1))] = data.draw(st.integers(0, 255))
    qkv(folder).write_bytes(whole)
    age(qkv(folder).parent)
    loaded, problem = None, ""
    try:
        loaded = load_model(open_checkpoint(folder)).state_dict()
    except CheckpointError as error:
        problem = str(error)
    if loaded is None:
        assert "qkv_proj" in problem
        return
    expected = load_model(open_checkpoint(sound)).state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in loaded.items())


@settings(RELAXED, max_examples=80)
@given(data=st.data())
def test_any_change_of_a_configuration_is_refused_or_harmless(
    folder: Path, data: st.DataObject
) -> None:
    """One line that names the file, or the folder and the key; or a model, whole."""
    path = data.draw(st.sampled_from([folder / "model_config.json", folder / "config.yaml"]))
    whole = path.read_bytes()
    tree = data.draw(mutated(yaml.safe_load(whole)))
    content = (written(tree) if path.suffix == ".yaml" else as_json(tree)).encode()
    path.write_bytes(data.draw(st.just(content) | damaged(content)))
    age(path.parent)
    said = str(path.parent)
    try:
        checkpoint = open_checkpoint(path.parent)
        check_complete(checkpoint)
        load_model(checkpoint)
    except CheckpointError as error:
        said = str(error)
    path.write_bytes(whole)
    assert str(path.parent) in said
    assert said.isprintable()
    assert len(said) < 900


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_pickles_are_never_opened(folder: Path, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    for name in ("random/a.pt", "optimizer/b.pt", "lr_scheduler.pt", "model/model/c.pt"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pickle.dumps(Trap(sprung)))
        path.chmod(0)
    load_model(open_checkpoint(folder))
    assert not sprung.exists()


def test_a_writer_at_work_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, content = norm(folder), norm(folder).read_bytes()
    path.write_bytes(content)
    checkpoint = open_checkpoint(folder)
    check_complete(checkpoint)  # fresh, but nothing changes
    monkeypatch.setattr("time.sleep", lambda _: path.write_bytes(content[:-1]))
    with pytest.raises(IncompleteCheckpoint, match="being written"):
        check_complete(checkpoint)


def test_latest_txt_vouches_for_a_fresh_step(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "latest.txt").write_text("7")
    norm(folder).write_bytes(norm(folder).read_bytes())
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("looked twice"))
    check_complete(open_checkpoint(folder.parent))


@pytest.mark.parametrize("change", ["added", "deleted", "replaced", "configuration"])
def test_changed_between_opening_and_loading(folder: Path, change: str) -> None:
    checkpoint = open_checkpoint(folder)
    if change == "added":
        shutil.copy(norm(folder), norm(folder).parent / "model_other.safetensors")
    elif change == "deleted":
        norm(folder).unlink()
    elif change == "replaced":
        rewrite(norm(folder), torch.zeros(32))
    else:
        config(folder, rms_norm_eps=2e-5)
    for look in (check_complete, load_model):
        with pytest.raises(IncompleteCheckpoint, match="changed since it was opened"):
            look(checkpoint)


def test_each_header_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a parallel file system, a thousand of them take seconds."""
    reads: list[Path] = []
    read_header = shards.read_header
    monkeypatch.setattr(
        shards, "read_header", lambda path: [reads.append(path), read_header(path)][-1]
    )
    checkpoint = open_checkpoint(folder)
    check_complete(checkpoint)
    load_model(checkpoint)
    assert sorted(reads) == checkpoint.weights


@pytest.mark.parametrize("content", ["9" * 300, "", "../7", "7\0", "٧"])
def test_odd_names_of_the_latest_step(folder: Path, content: str) -> None:
    latest = folder.parent / "latest.txt"
    latest.write_text(content)
    with pytest.raises(CheckpointError, match=r"latest\.txt: .* is not a step"):
        open_checkpoint(folder.parent)
