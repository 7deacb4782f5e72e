"""Define `Job`: a checkpoint with its stage's settings, its backend, and its score store."""

import importlib.metadata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from evaluation.checkpoints.agreement import check_agreement, check_tokenizer_fits
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.state import checkpoint_state, is_left_of
from evaluation.checkpoints.subjects import Subject
from evaluation.errors import EvaluationError, ScoringError
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.gpu import gpu_faults
from evaluation.scoring.window import Window, prefix_of
from evaluation.store import ScoreStore

PACKAGES = ("torch", "transformers", "safetensors", "numpy", "pyarrow")


class Job:
    """A complete checkpoint that fits its stage; `backend` loads the model at its first use.

    Args:
        vocab_size_needed: Rows that the model's embedding must have for the stage's token ids.
    """

    def __init__(self, subject: Subject, tokenizer: dict[str, Any], vocab_size_needed: int) -> None:
        self.plan = plan = subject.plan
        self.tokenizer = tokenizer
        self.checkpoint = subject.open()
        self.location = subject.checkpoint
        self.subject, self._state = subject, checkpoint_state(self.location)
        check_complete(self.checkpoint)
        check_agreement(plan, self.checkpoint, is_bridge=subject.role == "bridge")
        check_tokenizer_fits(self.checkpoint, vocab_size_needed, tokenizer["vocab_size"])
        scoring, cache = plan.config.scoring, Path(plan.config.cache)
        self.backend = EngineBackend(scoring, self.checkpoint, self.check_unchanged, cache)
        self._contents = Contents(Path(plan.config.results))
        self.store = ScoreStore(plan.scores, self._contents.identity(self.checkpoint))

    def check_unchanged(self) -> None:
        """Raise ScoringError if the checkpoint on disk is not the one that was opened any more.

        It may have been deleted meanwhile: the loaded model was complete. Where only times differ, as after
        `touch`, its content is compared.
        """
        state = checkpoint_state(self.location)
        if is_left_of(state, self._state):
            return
        if self._contents.identity(self.subject.open()) != self.store.identity:
            raise ScoringError(
                f"{self.location}: replaced while it was being read or scored; run again "
                "once its writer has finished"
            )
        self._state = state

    @property
    def numeric_settings(self) -> dict[str, Any]:
        """Device and dtype, which are in every key: they can change a score beyond rounding noise."""
        return {"device": self.backend.device, "dtype": self.backend.dtype}

    def key(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return an item's key: what its scores depend on besides token ids, with the tier's own part."""
        return {**own, "sequence_length": self.plan.sequence_length, **self.numeric_settings}

    @contextmanager
    def naming(self, name: str) -> Iterator[None]:
        """Add checkpoint and item to the messages of the block's errors, a GPU's too."""
        try:
            with gpu_faults():
                yield
        except EvaluationError as error:
            raise type(error)(f"{self.location}: {name}: {error}") from error

    def cost(self, seconds: float, tokens: int) -> dict[str, Any]:
        """Return the summary of rows that took so long: also GPU, and versions of packages."""
        return {
            "seconds": round(seconds, 3),
            "tokens_processed": tokens,
            "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
            "row_tokens": self.backend.row_tokens,
            "gpu": torch.cuda.get_device_name() if self.backend.device == "cuda" else None,
        }

    @property
    def window(self) -> Window:
        """What requests are fitted to; BOS only if prefill put it before every context."""
        bos, eos = self.tokenizer["bos_token_id"], self.tokenizer["eos_token_id"]
        kept = bos if self.tokenizer["prepend_bos"] else None
        return Window(self.plan.sequence_length, prefix_of(bos, eos), kept)
