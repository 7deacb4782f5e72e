"""What runs on a GPU, and is skipped where there is none (`pytest -m gpu`); input is fresh in every run.

A failure prints its seed, and `EVAL_TEST_SEED=<seed>` gives the same input again.
"""

import os

import numpy as np
import pytest
import torch

from tests.gpu.models import DTYPES


@pytest.fixture
def device() -> str:
    if not torch.cuda.is_available():
        pytest.skip("no GPU: PyTorch sees none")
    return "cuda"


@pytest.fixture(params=list(DTYPES))
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    chosen: torch.dtype = getattr(torch, request.param)
    return chosen


@pytest.fixture
def random() -> np.random.Generator:
    seed = int(os.environ.get("EVAL_TEST_SEED", "0")) or int.from_bytes(os.urandom(4), "little")
    print(f"EVAL_TEST_SEED={seed}")
    torch.manual_seed(seed)
    return np.random.default_rng(seed)
