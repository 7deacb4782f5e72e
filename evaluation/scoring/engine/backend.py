"""Compute log-likelihoods, losses and completions of one checkpoint; load its model on first use."""

import copy
import functools
import gc
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from transformers import PreTrainedModel

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import NotEnoughMemory
from evaluation.scoring.answers import Answers, Requests
from evaluation.scoring.engine.check_decoding import ensure_decodable
from evaluation.scoring.engine.forward import SMALLEST, Engine
from evaluation.scoring.engine.generate import generate
from evaluation.scoring.engine.gpu import INDUCTOR, gpu_faults
from evaluation.scoring.engine.packing import Ints
from evaluation.scoring.engine.rows import Floats, Score, score_blocks, score_requests
from evaluation.scoring.gpus import choose_device, limit_threads
from evaluation.scoring.window import Request
from evaluation.settings.computing import Scoring

log = logging.getLogger(__name__)

Scores = TypeVar("Scores")


class EngineBackend:
    """Runs a checkpoint with the built-in engine.

    `device` and `dtype` are part of every score's key. Scoring raises NonFiniteError if the model returns NaN
    or infinity, and ScoringError if it cannot be run; both name the item.

    Args:
        loaded: Called once the model is in memory.
        cache: Shared folder in which jobs store compiled kernels; None: torch's own.
    """

    def __init__(
        self,
        scoring: Scoring,
        checkpoint: Checkpoint,
        loaded: Callable[[], None],
        cache: Path | None = None,
    ) -> None:
        self._batch, self._checkpoint, self._loaded = scoring.generation_batch, checkpoint, loaded
        limit_threads()
        self.device = choose_device(scoring.device)
        on_cpu = self.device == "cpu"
        self.row_tokens = scoring.cpu_row_tokens if on_cpu else scoring.row_tokens
        self.dtype: str = scoring.dtype
        if self.dtype == "auto":
            self.dtype = "float32" if on_cpu else checkpoint.dtype
        self._compiler = INDUCTOR.get(self.device) if scoring.compile == "auto" else None
        if cache is not None:
            os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache / "compiled"))

    @property
    def tokens_processed(self) -> int:
        """Number of tokens processed so far; loads the model if it is not loaded."""
        return self.engine.tokens_processed

    @functools.cached_property
    def model(self) -> PreTrainedModel:
        """Load the model when it is first needed; raise NotEnoughMemory if a GPU has too little."""
        start, dtype = time.perf_counter(), getattr(torch, self.dtype)
        try:
            with gpu_faults():
                model = load_model(self._checkpoint, dtype=dtype, device=self.device)
        except NotEnoughMemory as error:
            path = self._checkpoint.path
            raise NotEnoughMemory(f"{path}: it does not fit one GPU: {error}") from None
        self._loaded()
        log.info("loaded %s in %.1f s", self._checkpoint.path, time.perf_counter() - start)
        return model

    @functools.cached_property
    def engine(self) -> Engine:
        """Prepare the model for scoring when it is first needed."""
        model, device = self.model, self.device
        with gpu_faults():
            return Engine(model, row_tokens=self.row_tokens, device=device, compiler=self._compiler)

    def unload(self) -> None:
        """Free the device's memory; the next request loads the model again."""
        for loaded in ("engine", "model"):
            self.__dict__.pop(loaded, None)
        gc.collect()  # a model has reference cycles
        torch.cuda.empty_cache()

    def log_likelihoods(self, requests: Sequence[Request]) -> list[Score]:
        """Return the log-likelihood of each continuation; requests must fit the context window."""
        return self._within_memory(lambda: score_requests(self.engine, requests))

    def block_nats(
        self, tokens: torch.Tensor, document_starts: torch.Tensor | None
    ) -> tuple[Floats, Ints]:
        """Return the nats of blocks of tokens (blocks, length) by position, and counts, (blocks, bins).

        With the flat positions at which documents begin, a token attends only to its own document.
        """
        return self._within_memory(lambda: score_blocks(self.engine, tokens, document_starts))

    def answers(self, requests: Requests, *, vocabulary: int) -> Iterator[Answers]:
        """Yield the answers to requests, in parts as they are finished; the model is loaded at once.

        A sample depends on the checkpoint, the request's tokens, its sampling settings with their
        seed, and the sample's index; not on other requests. Only ids below `vocabulary` are chosen.
        """
        # Compiled layers would be compiled anew for each width of a batch.
        engine = copy.copy(self.engine)
        engine.compiler = None
        lengths = (len(one.tokens) + one.max_new_tokens for one in requests.values())
        ensure_decodable(engine, max(lengths))
        return generate(engine, requests, vocabulary=vocabulary, batch=self._batch)

    def _within_memory(self, run: Callable[[], Scores]) -> Scores:
        """Run; halve the tokens of a pass, of later ones too, each time that a GPU's memory is exhausted."""
        while True:
            try:
                with gpu_faults():
                    return run()
            except NotEnoughMemory as error:
                if self.row_tokens < 2 * SMALLEST:
                    raise
                self.row_tokens //= 2
                self.engine.row_tokens = self.row_tokens
                log.warning("%s; continuing with %d tokens a pass", error, self.row_tokens)
            torch.cuda.empty_cache()  # after `except`, which holds the failed pass's tensors
