"""Run one checkpoint with the built-in engine; load its model on first use."""

import copy
import functools
import gc
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import torch

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import NotEnoughMemory
from evaluation.scoring.answers import Answers, Requests
from evaluation.scoring.engine.check import ensure_decodable
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.generate import MOST, generate
from evaluation.scoring.engine.gpu import INDUCTOR, gpu_faults
from evaluation.scoring.gpus import choose_device, limit_threads
from evaluation.settings.computing import Scoring

log = logging.getLogger(__name__)

Scored = TypeVar("Scored")

SMALLEST = 256
"""Least tokens of a forward pass; if these exceed the memory, scoring fails."""


class EngineBackend:
    """A checkpoint on a device, in a dtype; both are part of every score's key.

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
        self._scoring, self._checkpoint, self._loaded = scoring, checkpoint, loaded
        limit_threads()
        self.device = choose_device(scoring.device)
        on_cpu = self.device == "cpu"
        self.row_tokens = scoring.cpu_row_tokens if on_cpu else scoring.row_tokens
        self.dtype: str = scoring.dtype
        if self.dtype == "auto":
            self.dtype = "float32" if on_cpu else checkpoint.dtype
        self._batch = scoring.generation_batch or MOST[self.device]
        if cache is not None:
            os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache / "compiled"))

    @functools.cached_property
    def engine(self) -> Engine:
        """Load the model when it is first needed; raise NotEnoughMemory if a GPU has too little."""
        start, compiler = time.perf_counter(), None
        if self._scoring.compile == "auto":
            compiler = INDUCTOR.get(self.device)
        model = load_model(self._checkpoint, dtype=getattr(torch, self.dtype), device=self.device)
        self._loaded()
        log.info("loaded %s in %.1f s", self._checkpoint.path, time.perf_counter() - start)
        return Engine(model, row_tokens=self.row_tokens, device=self.device, compiler=compiler)

    def within_memory(self, run: Callable[[], Scored]) -> Scored:
        """Run; each time that a GPU's memory is exhausted, do so with half the tokens and answers at once."""
        while True:
            try:
                with gpu_faults():
                    return run()
            except NotEnoughMemory as error:
                if "engine" not in self.__dict__ or self.row_tokens < 2 * SMALLEST:
                    raise
                self.engine.row_tokens = self.row_tokens = self.row_tokens // 2
                self._batch = max(1, self._batch // 2)
                log.warning("%s; continuing with %d tokens a pass", error, self.row_tokens)

    def unload(self) -> None:
        """Free the device's memory; the next request loads the model again."""
        self.__dict__.pop("engine", None)
        gc.collect()  # a model has reference cycles
        torch.cuda.empty_cache()

    def answers(self, requests: Requests, *, vocabulary: int) -> Iterator[Answers]:
        """Yield the answers to requests, in parts as they are finished; load and check the model at once.

        A sample depends on the checkpoint, the request's tokens, its sampling settings with their
        seed, and the sample's index; not on other requests. Only ids below `vocabulary` are chosen.
        """
        # Compiled layers would be compiled anew for each width of a batch.
        engine = copy.copy(self.engine)
        engine.compiler = None
        ensure_decodable(
            engine, max(len(one.tokens) + one.max_new_tokens for one in requests.values())
        )
        return generate(engine, requests, vocabulary=vocabulary, batch=self._batch)
