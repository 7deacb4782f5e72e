"""A checkpoint spread over several processes: the same scores and answers as in one.

On CPU by gloo; on a GPU only the library that carries the numbers is another.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evaluation.checkpoints.format import open_checkpoint
from evaluation.errors import EvaluationError, ScoringError
from evaluation.scoring.answers import GenerationRequest, Stopping
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.generation import flight
from evaluation.scoring.engine.generation.flight import Flight
from evaluation.scoring.engine.window import Request
from evaluation.scoring.team import backend as team
from evaluation.scoring.team.backend import TeamBackend, end_team
from evaluation.settings.computing import Scoring
from evaluation.settings.generation import Sampling
from tests.checkpoints.nanotron import llama, make_checkpoint, moe, qwen2
from tests.conftest import ROOT

HEADS = {"num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 60}
MODELS = [
    ("llama, tied", 2, llama(**HEADS, tie_word_embeddings=True, rope_interleaved=True)),
    ("qwen2, biases", 4, qwen2(**HEADS, attention_bias=True)),
    ("qwen2, window, experts", 2, qwen2(**HEADS, moe_config=moe())),
]


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    yield
    end_team()


def scoring(ranks: int, **changes: Any) -> Scoring:
    changes = {"cpu_row_tokens": 48, **changes}
    return Scoring(device="cpu", gpus_per_checkpoint=ranks, **changes)


def requests(count: int = 40) -> list[Request]:
    """Some share the beginning of their context."""
    chance = random.Random(count)
    stems = [tuple(chance.choices(range(60), k=chance.randint(1, 9))) for _ in range(count // 3)]
    return [
        Request(
            (*chance.choice(stems), chance.randrange(60)),
            tuple(chance.choices(range(60), k=chance.randint(1, 4))),
        )
        for _ in range(count)
    ]


def decode(tokens: list[int]) -> str:
    return "".join(chr(97 + token % 26) for token in tokens)


STOPPING = Stopping(frozenset({5}), ("ab", "z"), decode)
ASKED = [
    GenerationRequest("greedy", (3, 9, 27), 12),
    GenerationRequest("another", (3, 9, 28, 30), 5),
    GenerationRequest("drawn", (8, 4), 9, (0, 1, 2), Sampling(temperature=0.8, top_k=20, n=3)),
]


def answers(backend: Any) -> dict[Any, Any]:
    parts = list(backend.answers(ASKED, STOPPING, vocabulary=58))
    return {key: answer for part in parts for key, answer in part.items()}


@pytest.mark.parametrize(("ranks", "config"), [m[1:] for m in MODELS], ids=[m[0] for m in MODELS])
def test_scores_are_those_of_one_process(
    ranks: int, config: dict[str, Any], tmp_path: Path
) -> None:
    make_checkpoint(tmp_path / "7", config, tp=2)
    checkpoint = open_checkpoint(tmp_path / "7")
    tokens = torch.randint(0, 60, (5, 24), generator=torch.Generator().manual_seed(1))
    tokens = tokens.to(torch.uint16)  # as in a cache
    starts = torch.tensor([0, 30, 49, 96])
    found = []
    for backend in (
        EngineBackend(scoring(1), checkpoint, lambda: None),
        TeamBackend(scoring(ranks), checkpoint, lambda: None),
    ):
        scores = backend.log_likelihoods(requests(), label="requests")
        nats, counts = backend.block_nats(tokens, starts, label="blocks")
        found.append((scores, nats, counts, answers(backend), backend.tokens_processed))
    (scores, nats, counts, written, processed), other = found[0], found[1]
    assert np.allclose(
        [one.logprob for one in other[0]], [one.logprob for one in scores], 0, 1e-5 * 4
    )
    assert [one.is_greedy for one in other[0]] == [one.is_greedy for one in scores]
    assert np.allclose(other[1] / counts, nats / counts, 0, 1e-5)
    assert other[2].tolist() == counts.tolist()
    assert other[3] == written
    assert len({answer.stop_reason for answer in written.values()}) > 1
    assert other[4] == processed


@pytest.fixture
def leading(tmp_path: Path) -> TeamBackend:
    """Of two processes, whose model is in memory."""
    make_checkpoint(tmp_path / "7", llama(**HEADS))
    backend = TeamBackend(scoring(2), open_checkpoint(tmp_path / "7"), lambda: None)
    assert backend.tokens_processed == 0
    return backend


def test_without_memory_another_team_goes_on_with_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the same scores and answers; what was answered is not asked again."""
    make_checkpoint(tmp_path / "7", llama(**HEADS))
    checkpoint = open_checkpoint(tmp_path / "7")
    roomy = {"cpu_row_tokens": 2048, "generation_batch": 4}
    one = EngineBackend(scoring(1, **roomy), checkpoint, lambda: None)
    expected, written = one.log_likelihoods(requests(), label="requests"), answers(one)
    launch, forward = Engine.launch, Flight._forward
    steps = 0

    def launched(self: Engine, batch: Any) -> Any:
        if self.row_tokens > 1024:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return launch(self, batch)

    def read(self: Flight, *arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        if self._slots.rows > 2 and steps > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(self, *arguments)

    backend = TeamBackend(scoring(2, **roomy), checkpoint, lambda: None)
    assert backend.tokens_processed == 0
    monkeypatch.setattr(flight, "PART_ANSWERS", 1)
    monkeypatch.setattr(Engine, "launch", launched)
    found = backend.log_likelihoods(requests(), label="requests")
    assert np.allclose([o.logprob for o in found], [o.logprob for o in expected], 0, 1e-4)
    assert backend.row_tokens == 1024
    assert backend.tokens_processed == one.tokens_processed
    monkeypatch.setattr(Flight, "_forward", read)
    parts = list(backend.answers(ASKED, STOPPING, vocabulary=58))
    assert sum(map(len, parts)) == len(written)
    assert {key: answer for part in parts for key, answer in part.items()} == written
    assert [line.split("; ")[-1] for line in caplog.messages if "another team" in line] == [
        f"going on with {count} in another team" for count in (1024, 2)
    ]


def follower() -> int:
    (started,) = team._LEADING[0]._followers
    return started.process.pid


def is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("is_waited_for", [False, True], ids=["between passes", "in a pass"])
def test_a_process_that_dies_ends_the_others(leading: TeamBackend, is_waited_for: bool) -> None:
    """By one sentence, at once; the next call begins with another team."""
    pid = follower()
    if is_waited_for:
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(1.0, os.kill, (pid, signal.SIGKILL)).start()
    else:
        os.kill(pid, signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(ScoringError, match=r"process 2 of 2 .* was ended by SIGKILL; .*run again"):
        leading.log_likelihoods(requests(), label="requests")
    assert time.monotonic() - start < 15
    assert not team._LEADING
    assert is_gone(pid)
    again = leading.log_likelihoods(requests(6), label="requests")
    assert len(again) == 6


def test_a_process_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "PATIENCE", 4.0)
    make_checkpoint(tmp_path / "7", llama(**HEADS))
    backend = TeamBackend(scoring(2), open_checkpoint(tmp_path / "7"), lambda: None)
    assert backend.tokens_processed == 0
    os.kill(pid := follower(), signal.SIGSTOP)
    with pytest.raises(ScoringError, match=r"2 processes .* have waited for one another for 4 s"):
        backend.log_likelihoods(requests(), label="requests")
    assert is_gone(pid)


def test_an_error_of_one_process_alone_is_told_as_it_is(leading: TeamBackend) -> None:
    follower_call = team.Call("log_likelihoods", ([Request((1,), (2, 99))],), (("label", None),))
    call = leading._gathered().calling(follower_call)
    with pytest.raises(ScoringError, match="token 99 is asked for"), call:
        pass


LEADER = """
import sys
from pathlib import Path
from evaluation.checkpoints.format import open_checkpoint
from evaluation.scoring.team import backend as team
from tests.scoring.test_team import scoring
leading = team.TeamBackend(scoring(2), open_checkpoint(Path(sys.argv[1])), lambda: None)
assert leading.tokens_processed == 0
print(team._LEADING[0]._followers[0].process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("ended", ["killed", "done"])
def test_followers_end_with_their_leader(tmp_path: Path, ended: str) -> None:
    make_checkpoint(tmp_path / "7", llama(**HEADS))
    command = [sys.executable, "-c", LEADER, str(tmp_path / "7")]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as leader:
        assert leader.stdout is not None
        pid = int(leader.stdout.readline())
        if ended == "killed":
            leader.kill()
        leader.communicate()
    assert leader.returncode == (0 if ended == "done" else -signal.SIGKILL)
    assert is_gone(pid)


def test_gpus_are_dealt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,3,MIG-c")
    assert team.gpus_of_followers(3) == ["3", "MIG-c"]
    with pytest.raises(EvaluationError, match="4, but this process sees 3 GPUs; ask for as many"):
        team.gpus_of_followers(4)
