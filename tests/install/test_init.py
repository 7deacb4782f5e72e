"""What `init` writes is valid, and it writes nothing where it could not work."""

from pathlib import Path

import pytest

from evaluation.__main__ import main
from evaluation.settings.config import load_config
from tests.conftest import ROOT


def init(folder: Path, checkpoints: object, *options: str) -> int:
    return main(["init", str(folder), "--checkpoints", str(checkpoints), *options])


def test_the_smallest_configuration_with_the_path_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert init(Path("a study's run/new"), "ckpts: mine #1", "--suites") == 0
    new = tmp_path / "a study's run/new"
    config = load_config(new / "config/config.yaml")
    assert [*config.stages] == ["new"]
    assert config.stages["new"].checkpoints == str(tmp_path / "ckpts: mine #1")
    for profile in ("slurm_profile", "profiles/default"):
        written = (new / profile / "config.yaml").read_bytes()
        assert written == (ROOT / profile / "config.yaml").read_bytes()
    assert f'include: "{ROOT}/workflow/Snakefile"' in (new / "Snakefile").read_text()
    assert (new / "task_suites/stage1_cf_core.yaml").is_file()
    assert """cd 'a study'"'"'s run/new'""" in capsys.readouterr().out


def test_a_variable_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRATCH", "/scratch/me")
    assert init(tmp_path / "new", "$SCRATCH/ckpts") == 0
    assert "checkpoints: $SCRATCH/ckpts" in (tmp_path / "new/config/config.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "there", "said"),
    [
        ("new", "Snakefile", "Snakefile: is there already"),
        ("new", "slurm_profile", "slurm_profile: is there already"),
        ("n 2", None, "stages.n 2: "),
        ("all", None, "stages.all: "),
    ],
)
def test_what_could_not_work_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, there: str | None, said: str
) -> None:
    folder = tmp_path / name
    if there:
        (folder / there).mkdir(parents=True)
    assert init(folder, "ckpts") == 1
    assert said in capsys.readouterr().err
    assert [path.name for path in folder.glob("*")] == ([there] if there else [])
