"""What `init` writes from its options is valid, says what was asked for, and is refused where it could not work."""

import contextlib
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from evaluation.__main__ import main
from evaluation.settings.config import load_config
from evaluation.settings.planning import stage_suite
from tests.conftest import ROOT


def init(folder: Path, *options: str) -> int:
    return main(["init", str(folder), *options])


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    for name in ("web/100", "web/200", "mix/step_50"):
        (tmp_path / "ckpts" / name).mkdir(parents=True)
    return tmp_path / "ckpts"


def test_stages_follow_one_another(checkpoints: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("A text.")
    options = ("--text", f"mine={tmp_path}/mi*.txt", "--tokenizer", "some/tokenizer")
    stages = ("--stage", f"web={checkpoints}/web", "--stage", f"mix={checkpoints}/mix")
    assert init(tmp_path / "new", *stages, *options) == 0
    config = load_config(tmp_path / "new/config/config.yaml")
    assert [*config.stages] == ["web", "mix"]
    assert config.stages["web"].bridge is None
    bridge, objectives = config.stages["mix"].bridge, config.stages["mix"].objective
    assert bridge is not None
    assert bridge.stage == "web"
    assert [one.title for one in objectives] == [
        "Ranked choices (tier3), accuracy: any gain is wanted",
        "Perplexity (tier2), nats per token: a loss of at most 0.02 nats per token is allowed",
    ]
    assert config.tokenizer is not None
    assert config.tokenizer.name == "some/tokenizer"
    own = yaml.safe_load((tmp_path / "new/task_suites/own.yaml").read_text())
    assert own == {"slices": {"mine": {"files": [f"{tmp_path}/mi*.txt"]}}}
    here = config.model_copy(update={"suites": str(tmp_path / "new/task_suites")})
    assert "mine" in stage_suite(here, "mix").slices


def test_one_folder_is_the_smallest_configuration(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(tmp_path / "new", "--checkpoints", str(checkpoints / "web")) == 0
    config = load_config(tmp_path / "new/config/config.yaml")
    assert [*config.stages] == ["new"]
    assert "note:" not in capsys.readouterr().out
    assert init(tmp_path / "later", "--checkpoints", str(tmp_path / "none")) == 0
    assert "none is not a folder on this machine" in capsys.readouterr().out


def on_a_terminal(folder: Path, answers: str, *options: str) -> tuple[int, str]:
    """The exit code of `init` whose answers are typed, and what the terminal shows."""
    pid, terminal = pty.fork()
    if not pid:
        os.execv(
            sys.executable, [sys.executable, "-m", "evaluation", "init", str(folder), *options]
        )
    os.write(terminal, answers.encode())
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while more := os.read(terminal, 4096):
            shown += more
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def test_on_a_terminal_it_asks(checkpoints: Path, tmp_path: Path) -> None:
    """And again where an answer could not work."""
    stages = f"web={checkpoints}/web\nmix\nweb=/other\nmix={tmp_path}/none\n\n"
    objectives = "tier3 gain 1\ntier4 keep 0.1\ntier3 improve 0.01\n\n"
    code, shown = on_a_terminal(tmp_path / "new", f"{stages}\n{objectives}some/tokenizer\n")
    assert code == 0, shown
    for said in (
        "'mix' is not NAME=VALUE",
        "web is there already",
        "none is not a folder on this machine",
        "write tier, group if any",
        "hold nothing of tier4",
    ):
        assert said in shown, shown
    config = load_config(tmp_path / "new/config/config.yaml")
    assert [*config.stages] == ["web", "mix"]
    assert [(one.tier, one.margin) for one in config.stages["mix"].objective] == [("tier3", 0.01)]
    assert config.tokenizer is not None
    assert config.tokenizer.name == "some/tokenizer"


def test_an_end_of_the_answers_writes_nothing(tmp_path: Path) -> None:
    code, shown = on_a_terminal(tmp_path / "new", "\x04")
    assert (code, (tmp_path / "new").exists()) == (1, False)
    assert "nothing is written" in shown


def test_without_a_terminal_nothing_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(tmp_path / "new") == 1
    assert "name folders by --checkpoints or --stage" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cluster", "folder", "files"),
    [
        ("lumi", "slurm_profile", ["config.yaml", "no_srun"]),
        ("no_slurm", "profile", ["config.yaml"]),
        ("gpu_box", "profile", ["config.yaml"]),
    ],
)
def test_a_site_has_its_profile(
    checkpoints: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    cluster: str,
    folder: str,
    files: list[str],
) -> None:
    """And a machine without Slurm nothing that is for Slurm."""
    given = ("--checkpoints", str(checkpoints / "web"), "--cluster", cluster)
    assert init(tmp_path / "new", *given) == 0
    written, shipped = tmp_path / "new" / folder, ROOT / "profiles" / cluster
    assert (written / "config.yaml").read_bytes() == (shipped / "config.yaml").read_bytes()
    assert sorted(path.name for path in written.iterdir()) == files
    said = capsys.readouterr().out
    text = (tmp_path / "new/config/config.yaml").read_text()
    for shown in (said, text):
        assert f"snakemake prefill --profile {folder}\n" in shown.replace(" " * 6 + "#", "\n")
        assert "--cores" not in shown
    others = {"slurm_profile", "profile"} - {folder}
    assert not any((tmp_path / "new" / other).exists() for other in others)
    assert not any(other in (said + text).split("/") for other in others)


def test_what_is_printed_can_be_typed(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = f"web={checkpoints}/web"
    assert init(tmp_path / "study $one", "--stage", stage) == 0
    assert f"cd '{tmp_path}/study $one'\n" in capsys.readouterr().out
    assert init(tmp_path / "n 2", "--checkpoints", f"{checkpoints}/web x") == 1
    said = capsys.readouterr().err
    assert f"name it by `--stage 'NAME={checkpoints}/web x'` in place of --checkpoints" in said
    assert "rename" not in said
    assert not (tmp_path / "n 2").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--objective", "tier3 improve 0"], "nothing to be compared with"),
        (["--bridge", "x", "--objective", "tier2 hq wish 3"], "write tier, group if any"),
        (["--bridge", "x", "--objective", "tier9 keep 0"], "tier9"),
        (["--bridge", "x", "--objective", "tier4 keep 0.1"], "hold nothing of tier4"),
        (["--suite", "none"], "none"),
        (["--text", "mine=none/*.txt"], "nothing is at none/*.txt"),
        (["--text", "a=x", "--text", "a=y"], "a: is given twice"),
        (["--text", "a={folder}/rows.jsonl"], "have no field `text`, but id, content; leave"),
        (["--text", "a={folder}/none.jsonl"], "none.jsonl: has no rows"),
        (["--text", "a={folder}/rows.doc"], "give it the suffix of what it is"),
    ],
)
def test_what_could_not_work_is_refused_at_once(
    checkpoints: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    said: str,
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "content": "A text."}\n')
    for name in ("none.jsonl", "rows.doc"):
        (tmp_path / name).touch()
    options = [option.format(folder=tmp_path) for option in options]
    assert init(tmp_path / "new", "--checkpoints", str(checkpoints / "web"), *options) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_table_of_text_is_converted_as_it_is_said(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "it's mine.tsv").write_text("id\ttext\n1\tEin Größenvergleich.\n")
    given = ("--checkpoints", str(checkpoints / "web"), "--text")
    assert init(tmp_path / "new", *given, f"a={tmp_path}/*.tsv") == 1
    (typed,) = re.findall("`(.*)`", capsys.readouterr().err)
    words = shlex.split(typed)
    assert words[0] == "python"
    subprocess.run([sys.executable, *words[1:]], check=True)
    assert init(tmp_path / "new", *given, f"a={tmp_path}/*.parquet") == 0
