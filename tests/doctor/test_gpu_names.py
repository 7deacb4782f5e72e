"""CUDA_VISIBLE_DEVICES as CUDA reads it: numbers, UUIDs, parts of a GPU (MIG), and mistakes."""

import pytest
import torch

from evaluation.doctor.gpu import check_gpu
from evaluation.scoring.engine.device import choose_device
from evaluation.scoring.engine.gpus import UnknownGpu, check_free, visible_gpus
from tests.doctor.conftest import NvidiaSmi, only

TWO = "0, GPU-aaa1, NVIDIA A100, {}, 81920\n1, GPU-bbb2, NVIDIA A100, 4, 81920\n"
LISTED = (
    "GPU 0: NVIDIA A100 (UUID: GPU-aaa1)\n"
    "  MIG 3g.40gb     Device  0: (UUID: MIG-1c2d)\n"
    "  MIG 1g.10gb     Device  1: (UUID: MIG-77ee)\n"
    "GPU 1: NVIDIA A100 (UUID: GPU-bbb2)\n"
)
DOCUMENT = (
    '<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd"><nvidia_smi_log>'
    '<gpu id="0"><mig_devices>{}</mig_devices><uuid>GPU-aaa1</uuid></gpu>'
    '<gpu id="1"><mig_devices>None</mig_devices><uuid>GPU-bbb2</uuid></gpu></nvidia_smi_log>'
)
PART = (
    "<mig_device><index>{}</index><fb_memory_usage><total>{} MiB</total><used>{} MiB</used>"
    "</fb_memory_usage></mig_device>"
)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch):
    """Sets the variable; None unsets it."""

    def choose(value: str | None) -> None:
        if value is None:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        else:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)

    return choose


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ["GPU-aaa1", "GPU-bbb2"]),
        ("1", ["GPU-bbb2"]),
        ("1,0", ["GPU-bbb2", "GPU-aaa1"]),
        (" 1 , 0 ", ["GPU-bbb2", "GPU-aaa1"]),
        ("GPU-bbb2", ["GPU-bbb2"]),
        ("GPU-b", ["GPU-bbb2"]),
        ("0,-1,1", ["GPU-aaa1"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("MIG-9a", ["MIG-9a"]),  # of which this nvidia-smi lists none
    ],
)
def test_which_gpus_are_shown(
    nvidia_smi: NvidiaSmi, names, value: str | None, shown: list[str]
) -> None:
    nvidia_smi(TWO.format(4))
    names(value)
    assert [gpu.uuid for gpu in visible_gpus()] == shown


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("2", ["'2', which is no GPU here", "0, 1, GPU-aaa1, GPU-bbb2, MIG-1c2d"]),
        ("GPU-ccc", ["'GPU-ccc', which is no GPU here"]),
        ("MIG-ffff", ["'MIG-ffff', which is no GPU here"]),
        ("all", ["'all', which is no GPU here"]),
        ("1,7", ["'7', which is no GPU here"]),
        ("1,1", ["'1' for a second time"]),
        ("1,GPU-bbb2", ["'GPU-bbb2' for a second time"]),
        ("1gpu", ["'1gpu', which is no GPU here"]),
    ],
)
def test_a_name_of_no_gpu(nvidia_smi: NvidiaSmi, names, value: str, words: list[str]) -> None:
    """CUDA would show none, or fewer, and the job take days on the CPU."""
    nvidia_smi(TWO.format(4), listed=LISTED)
    names(value)
    with pytest.raises(UnknownGpu) as caught:
        choose_device("auto")
    for word in (f"CUDA_VISIBLE_DEVICES={value}", *words, "correct it"):
        assert word in str(caught.value)
    assert only(check_gpu()) == str(caught.value)
    assert choose_device("cpu") == "cpu"


@pytest.mark.parametrize("value", ["", "-1", "NoDevFiles"])
def test_to_be_shown_none_is_no_fault(nvidia_smi: NvidiaSmi, names, value: str) -> None:
    nvidia_smi(TWO.format(60010))
    names(value)
    assert check_gpu().state == "ok"
    assert check_free(patience=0) is None


@pytest.mark.parametrize("chosen", ["1", "GPU-bbb2"])
def test_only_the_jobs_own_gpu_counts(nvidia_smi: NvidiaSmi, names, chosen: str) -> None:
    nvidia_smi(TWO.format(60010), "GPU-aaa1, 4242, /usr/bin/python, 60000\n")
    names(chosen)
    assert check_free(patience=0) is None


@pytest.mark.parametrize(
    ("value", "uuid"),
    [("MIG-1c2d", "MIG-1c2d"), ("MIG-77", "MIG-77ee"), ("0", "MIG-1c2d"), (None, "MIG-1c2d")],
)
def test_parts_of_a_gpu_have_memory_of_their_own(
    nvidia_smi: NvidiaSmi, names, value: str | None, uuid: str
) -> None:
    """What all parts of the GPU hold together would refuse the job."""
    both = PART.format(0, 40320, 37) + PART.format(1, 9728, 9000)
    nvidia_smi(TWO.format(60010), listed=LISTED, document=DOCUMENT.format(both))
    names(value)
    gpu = visible_gpus()[0]
    assert (gpu.uuid, gpu.is_part) == (uuid, True)
    assert (gpu.used, gpu.total) == ((37, 40320) if uuid == "MIG-1c2d" else (9000, 9728))
    if uuid == "MIG-77ee":
        with pytest.raises(Exception, match=r"MIG 1g.10gb\): 9,000 of 9,728 MiB are held"):
            check_free(patience=0)
    else:
        assert check_free(patience=0) is None


@pytest.mark.parametrize(
    ("document", "listed"),
    [
        ("", LISTED),
        ("no xml <", LISTED),
        (DOCUMENT.format("None"), LISTED),
        (DOCUMENT.format(PART.format(0, "N/A", "N/A")), LISTED),
        ("", ""),
    ],
)
def test_a_part_whose_memory_is_not_told(
    nvidia_smi: NvidiaSmi, monkeypatch: pytest.MonkeyPatch, names, document: str, listed: str
) -> None:
    """Neither dead nor held: a remark, and the job goes on."""
    nvidia_smi(TWO.format("[N/A]"), listed=listed, document=document)
    names("MIG-1c2d")
    remark = check_free(patience=0)
    assert remark is not None
    assert "is a part of a GPU (MIG): whether others hold its memory is not checked" in remark
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert remark in only(check_gpu(), "warning")


def test_the_size_of_a_part_by_its_name(nvidia_smi: NvidiaSmi, names) -> None:
    nvidia_smi(TWO.format("[N/A]"), listed=LISTED)
    names("MIG-77ee")
    assert visible_gpus()[0].total == 10 * 1024
