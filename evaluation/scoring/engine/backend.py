"""The project's own engine as a backend: a transformers model, loaded when it is first needed."""

import functools
import gc
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import ScoringError
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.engine.device import choose_device
from evaluation.scoring.engine.forward import Engine, NotEnoughMemory
from evaluation.scoring.engine.generation.generate import generate
from evaluation.scoring.engine.loglikelihood import score_blocks, score_requests
from evaluation.scoring.engine.window import Request, Score
from evaluation.settings.computing import Scoring

log = logging.getLogger(__name__)

Scores = TypeVar("Scores")

SMALLEST = 256
"""Tokens of a pass that memory is tried with; where these do not fit, nothing will."""


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


class EngineBackend:
    """Runs a checkpoint by the engine; `loaded` is called once the model is in memory."""

    def __init__(
        self, scoring: Scoring, checkpoint: Checkpoint, loaded: Callable[[], None]
    ) -> None:
        self._scoring = scoring
        self._checkpoint = checkpoint
        self._loaded = loaded
        self._numerics = choose_numerics(scoring, checkpoint)
        on_cpu = self.device == "cpu"
        self._row_tokens = scoring.cpu_row_tokens if on_cpu else scoring.row_tokens

    @property
    def device(self) -> str:
        return self._numerics.device

    @property
    def dtype(self) -> str:
        return self._numerics.dtype_name

    @property
    def row_tokens(self) -> int:
        return self._row_tokens

    @property
    def tokens_processed(self) -> int:
        return self.engine.tokens_processed

    @functools.cached_property
    def model(self) -> PreTrainedModel:
        start = time.perf_counter()
        try:
            model = load_model(self._checkpoint, dtype=self._numerics.dtype, device=self.device)
        except torch.OutOfMemoryError:
            raise ScoringError(
                f"{self._checkpoint.path}: the GPU has not enough memory for the weights in "
                f"{self.dtype}; use one with more, or scoring.dtype: bfloat16"
            ) from None
        self._loaded()
        log.info("loaded %s in %.1f s", self._checkpoint.path, time.perf_counter() - start)
        return model

    @functools.cached_property
    def engine(self) -> Engine:
        return Engine(self.model, row_tokens=self._row_tokens, device=self.device)

    def unload(self) -> None:
        for loaded in ("engine", "model"):
            self.__dict__.pop(loaded, None)
        gc.collect()  # a model is a ring of references
        if self.device == "cuda":
            torch.cuda.empty_cache()

    def log_likelihoods(self, requests: Sequence[Request], *, label: str) -> list[Score]:
        return self._within_memory(lambda: score_requests(self.engine, requests, progress=label))

    def block_nats(
        self, tokens: torch.Tensor, document_starts: torch.Tensor | None, *, label: str
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return self._within_memory(
            lambda: score_blocks(self.engine, tokens, document_starts, progress=label)
        )

    def answers(
        self, requests: Sequence[GenerationRequest], stopping: Stopping, *, vocabulary: int
    ) -> Iterator[dict[AnswerKey, Answer]]:
        return generate(
            self.model,
            requests,
            stopping,
            vocabulary=vocabulary,
            batch=self._scoring.generation_batch,
            device=self.device,
        )

    def _within_memory(self, run: Callable[[], Scores]) -> Scores:
        """With half the tokens in a pass, and half of that, as long as a GPU has not enough memory.

        Later items begin with what was enough. Raises NotEnoughMemory below SMALLEST.
        """
        while True:
            try:
                return run()
            except NotEnoughMemory as error:
                if self._row_tokens < 2 * SMALLEST:
                    raise
                self._row_tokens //= 2
                self.engine.row_tokens = self._row_tokens
                log.warning("%s; going on with %d", error, self._row_tokens)
            torch.cuda.empty_cache()  # outside, where the failed pass holds nothing any more
