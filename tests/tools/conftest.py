"""A tiny world whose commands run in this process, and what they said."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from evaluation.__main__ import main
from tests.workflow.world import World, build_world


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    def check(self, code: int, *words: str) -> None:
        """This exit code, all of these words on stderr, and no traceback."""
        assert self.code == code, self.err
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err, self.err


Command = Callable[..., Ended]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """Runs `python -m evaluation …`, in this process as it has imported all that is needed."""

    def run(*arguments: object) -> Ended:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = int(str(end.code))
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    handler = signal.getsignal(signal.SIGTERM)
    with mock.patch.dict(os.environ):
        yield run
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Not to be changed by tests."""
    return build_world(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="package")
def checkpoint(world: World) -> Path:
    return world.folder / "ckpts/stage1/10"


def made(path: Path, make: Callable[[Path], object]) -> Path:
    """A path at which something has been made."""
    make(path)
    return path
