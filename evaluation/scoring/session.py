"""One checkpoint under one stage's settings: agreement checks, the model loaded on demand."""

import functools
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from evaluation.checkpoints.agreement import check_agreement
from evaluation.checkpoints.completeness import check_complete, check_tokenizer_fits
from evaluation.checkpoints.format import Checkpoint, open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import ScoringError
from evaluation.scoring.engine.device import choose_device
from evaluation.scoring.engine.forward import Engine
from evaluation.settings.config import Scoring
from evaluation.settings.plan import StagePlan

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Numerics:
    """Device and dtype a model runs in."""

    device: str
    dtype: torch.dtype

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")


def choose_numerics(scoring: Scoring, checkpoint: Checkpoint) -> Numerics:
    """Resolves `auto`; raises like `choose_device`."""
    device = choose_device(scoring.device)
    name: str = scoring.dtype
    if name == "auto":
        name = "float32" if device == "cpu" else checkpoint.dtype
    return Numerics(device, getattr(torch, name))


class Session:
    """A complete, agreeing checkpoint; its model is loaded when first asked for."""

    def __init__(self, plan: StagePlan, path: Path, vocab_size_needed: int) -> None:
        self.plan = plan
        self._assumed = plan.stage.assume.use_mup if plan.stage.assume else None
        self.checkpoint = open_checkpoint(path, use_mup=self._assumed)
        check_complete(self.checkpoint)
        check_agreement(plan, self.checkpoint)
        check_tokenizer_fits(self.checkpoint, vocab_size_needed)
        self.numerics = choose_numerics(plan.config.scoring, self.checkpoint)

    @functools.cached_property
    def model(self) -> PreTrainedModel:
        start = time.perf_counter()
        model = load_model(self.checkpoint, dtype=self.numerics.dtype, device=self.numerics.device)
        self.check_unchanged()
        log.info("loaded %s in %.1f s", self.checkpoint.path, time.perf_counter() - start)
        return model

    def check_unchanged(self) -> None:
        """Raises ScoringError if the checkpoint on disk is no longer the one that was opened."""
        now = open_checkpoint(self.checkpoint.path, use_mup=self._assumed)
        if now.identity != self.checkpoint.identity:
            raise ScoringError(
                f"{self.checkpoint.path}: replaced while it was being read or scored; run again "
                "once its writer has finished"
            )

    @functools.cached_property
    def engine(self) -> Engine:
        scoring = self.plan.config.scoring
        on_cpu = self.numerics.device == "cpu"
        row_tokens = scoring.cpu_row_tokens if on_cpu else scoring.row_tokens
        return Engine(self.model, row_tokens=row_tokens, device=self.numerics.device)

    @property
    def tokens_processed(self) -> int:
        """Tokens that went through the engine so far."""
        return self.engine.tokens_processed

    def numeric_settings(self) -> dict[str, Any]:
        """What of the settings can change a score beyond floating-point noise."""
        return {"device": self.numerics.device, "dtype": self.numerics.dtype_name}
