"""One checkpoint under one stage's settings: agreement checks, and what runs it."""

from pathlib import Path
from typing import Any

import torch

from evaluation.checkpoints.agreement import check_agreement, check_tokenizer_fits
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.state import checkpoint_state, is_left_of
from evaluation.errors import ScoringError
from evaluation.scoring.backend import Backend
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.settings.plan import StagePlan


class Session:
    """A complete, agreeing checkpoint; its model is loaded when first asked for."""

    def __init__(self, plan: StagePlan, path: Path, vocab_size_needed: int) -> None:
        self.plan = plan
        assumed = plan.stage.assume.use_mup if plan.stage.assume else None
        self.checkpoint = open_checkpoint(path, use_mup=assumed)
        self._state = checkpoint_state(self.checkpoint.path)
        check_complete(self.checkpoint)
        check_agreement(plan, self.checkpoint)
        check_tokenizer_fits(self.checkpoint, vocab_size_needed)
        scoring, cache = plan.config.scoring, Path(plan.config.cache)
        self.backend: Backend = EngineBackend(scoring, self.checkpoint, self.check_unchanged, cache)

    def check_unchanged(self) -> None:
        """Raises ScoringError if the checkpoint on disk is no longer the one that was opened.

        It may be gone: what was loaded was whole.
        """
        if not is_left_of(checkpoint_state(self.checkpoint.path), self._state):
            raise ScoringError(
                f"{self.checkpoint.path}: replaced while it was being read or scored; run again "
                "once its writer has finished"
            )

    def machine(self) -> dict[str, Any]:
        """What it computes on, which decides the time that it takes and no score."""
        is_gpu = self.backend.device == "cuda"
        name = torch.cuda.get_device_name() if is_gpu else None
        gpus = self.plan.config.scoring.gpus_per_checkpoint
        spread = {"gpus_per_checkpoint": gpus} if gpus > 1 else {}
        return {"gpu": name, "row_tokens": self.backend.row_tokens, **spread}

    def numeric_settings(self) -> dict[str, Any]:
        """What of the settings can change a score beyond floating-point noise."""
        return {"device": self.backend.device, "dtype": self.backend.dtype}
