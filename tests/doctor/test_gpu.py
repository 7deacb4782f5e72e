"""A GPU that is dead, held, or not there, as nvidia-smi tells it."""

import pytest
import torch

from evaluation.doctor.gpu import check_gpu
from evaluation.errors import ConfigError, ScoringError
from evaluation.scoring.engine import gpus as gpu
from evaluation.scoring.engine.device import choose_device
from evaluation.scoring.engine.gpus import DeadGpu, check_free, visible_gpus
from tests.doctor.conftest import NvidiaSmi, only

TWO = "0, GPU-aaa, NVIDIA A100, {}, 81920\n1, GPU-bbb, NVIDIA A100, 4, 81920\n"
HOLDER = "GPU-aaa, 4242, /usr/bin/python, 60000\n"


def test_no_gpu_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    check = check_gpu()
    assert (check.state, "none on this machine" in check.summary) == ("ok", True)
    assert choose_device("auto") == "cpu"


@pytest.mark.parametrize(
    "said", ["No devices were found", "NVIDIA-SMI couldn't communicate with the NVIDIA driver."]
)
def test_a_login_node_with_the_tools_only(nvidia_smi: NvidiaSmi, said: str) -> None:
    nvidia_smi(otherwise=f'echo "{said}"; exit 9')
    assert check_gpu().state == "ok"
    assert choose_device("auto") == "cpu"


def test_a_dead_gpu_is_named(nvidia_smi: NvidiaSmi) -> None:
    said = "Unable to determine the device handle for GPU0000:01:00.0: GPU is lost"
    nvidia_smi(otherwise=f'echo "{said}"; exit 15')
    sentence = only(check_gpu())
    assert said in sentence
    assert "--exclude" in sentence
    with pytest.raises(ScoringError, match="GPU is lost"):
        choose_device("auto")
    assert choose_device("cpu") == "cpu"


def test_a_gpu_that_tells_no_memory_is_dead(nvidia_smi: NvidiaSmi) -> None:
    nvidia_smi(TWO.format("[Unknown Error]"))
    assert "GPU 0 (NVIDIA A100) does not tell its memory" in only(check_gpu())


def test_a_query_that_hangs_is_given_up(
    nvidia_smi: NvidiaSmi, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia_smi(otherwise="exec sleep 60")
    monkeypatch.setattr(gpu, "_SECONDS", 0.2)
    with pytest.raises(DeadGpu, match="does not answer"):
        visible_gpus()


def test_a_held_gpu_is_named_with_its_holder(nvidia_smi: NvidiaSmi) -> None:
    nvidia_smi(TWO.format(60010), HOLDER)
    finding = check_gpu().findings[0]
    assert finding.state == "fault"
    for word in ("GPU 0", "60,010 of 81,920 MiB", "process 4242 (/usr/bin/python, 60,000 MiB)"):
        assert word in finding.sentence
    with pytest.raises(ScoringError, match="process 4242"):
        check_free(patience=0)


def test_memory_of_its_own_is_not_anothers(
    nvidia_smi: NvidiaSmi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job's second checkpoint comes to a GPU on which its first one was scored."""
    nvidia_smi(TWO.format(60010))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert choose_device("auto") == "cuda"


def test_memory_of_hidden_processes_counts(nvidia_smi: NvidiaSmi) -> None:
    nvidia_smi(TWO.format(60010))
    with pytest.raises(ScoringError, match="processes that this user cannot see"):
        check_free(patience=0)


def test_a_little_of_it_held_is_a_remark(nvidia_smi: NvidiaSmi) -> None:
    nvidia_smi(TWO.format(9000), "GPU-aaa, 4242, python, 8990\n")
    remark = check_free(patience=0)
    assert remark is not None
    assert "9,000 of 81,920 MiB" in remark


def test_a_gpu_that_is_given_back_is_waited_for(nvidia_smi: NvidiaSmi) -> None:
    once = 'if [ "$1" != "${1#--query-gpu}" ] && [ ! -e $0.asked ]; then touch $0.asked; '
    once += 'echo "0, GPU-aaa, A100, 60000, 81920"; exit; fi'
    nvidia_smi(TWO.format(3), otherwise=once)
    assert check_free(patience=30) is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch has a GPU here")
def test_a_gpu_that_pytorch_cannot_use(
    nvidia_smi: NvidiaSmi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was given it stops; without being given one it goes on on the CPU."""
    nvidia_smi(TWO.format(3))
    assert "cannot use it" in only(check_gpu())
    with pytest.raises(ConfigError, match="PyTorch sees no GPU"):
        choose_device("cuda")
    assert choose_device("auto") == "cpu"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(ScoringError, match="cannot use it"):
        choose_device("auto")
