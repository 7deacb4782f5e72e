"""A checkpoint that is spread over several GPUs, as a backend: every call is every process's."""

import contextlib
import functools
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evaluation.checkpoints.format import Checkpoint
from evaluation.errors import ConfigError, NotEnoughMemory
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.engine.backend import SMALLEST, EngineBackend, Scores
from evaluation.scoring.engine.faults import too_little_memory
from evaluation.scoring.engine.ranks import find_store, join, leave, open_store
from evaluation.scoring.engine.window import Request, Score
from evaluation.scoring.team.messages import Call, Joining
from evaluation.scoring.team.team import Team
from evaluation.settings.computing import RANKS, Scoring

log = logging.getLogger(__name__)

PATIENCE = 600.0
"""Seconds that processes wait for one another: one of them may be compiling."""

_LEADING: list[Team] = []
"""The team that this process leads."""


class TeamBackend:
    """Runs a checkpoint by the engine in `scoring.gpus_per_checkpoint` processes; this one leads.

    Rows, batches and chosen tokens are the same in all, and only this one is asked for results. Where
    one of them has not enough memory for a pass the others are lost in it: all end, and others begin
    again with passes of half as much.
    """

    def __init__(
        self,
        scoring: Scoring,
        checkpoint: Checkpoint,
        loaded: Callable[[], None],
        cache: Path | None = None,
    ) -> None:
        self._scoring, self._checkpoint = scoring, checkpoint
        self._make_own = functools.partial(
            EngineBackend, checkpoint=checkpoint, loaded=loaded, cache=cache
        )
        self._own = self._make_own(scoring)
        self._team: Team | None = None
        self._earlier = 0
        """Tokens processed by teams that have ended."""

    @property
    def device(self) -> str:
        return self._own.device

    @property
    def dtype(self) -> str:
        return self._own.dtype

    @property
    def row_tokens(self) -> int:
        return self._own.row_tokens

    @property
    def tokens_processed(self) -> int:
        with self._calling("tokens_processed"):
            return self._earlier + self._own.tokens_processed

    def unload(self) -> None:
        if self._team is not None:
            self._team = None
            end_team()
        self._own.unload()

    def log_likelihoods(self, requests: Sequence[Request], *, label: str) -> list[Score]:
        def score() -> list[Score]:
            with self._calling("log_likelihoods", list(requests), label=None):
                return self._own.log_likelihoods(requests, label=label)

        return self._within_memory(score)

    def block_nats(
        self, tokens: torch.Tensor, document_starts: torch.Tensor | None, *, label: str
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        def score() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
            with self._calling("block_nats", tokens, document_starts, label=None):
                return self._own.block_nats(tokens, document_starts, label=label)

        return self._within_memory(score)

    def answers(
        self, requests: Sequence[GenerationRequest], stopping: Stopping, *, vocabulary: int
    ) -> Iterator[dict[AnswerKey, Answer]]:
        left = list(requests)
        silent = replace(stopping, decode=_nothing)
        while True:
            processed = self._processed()
            try:
                with self._calling("answers", left, silent, vocabulary=vocabulary):
                    for part in self._own.answers(left, stopping, vocabulary=vocabulary):
                        left = [_without(part, *one) for one in enumerate(left)]
                        yield part
                return
            except NotEnoughMemory as error:
                at_once = min(self._scoring.generation_batch, sum(len(one.samples) for one in left))
                self._begin_again(error, processed, generation_batch=at_once // 2)

    def _within_memory(self, score: Callable[[], Scores]) -> Scores:
        """With half the tokens in a pass, and half of that, as long as there is not enough memory."""
        while True:
            processed = self._processed()
            try:
                return score()
            except NotEnoughMemory as error:
                if self.row_tokens < 2 * SMALLEST:
                    raise too_little_memory(str(error)) from None
                fewer = self.row_tokens // 2
                self._begin_again(error, processed, row_tokens=fewer, cpu_row_tokens=fewer)

    def _processed(self) -> int:
        """In all; raises what loading the model does, for which no pass is too large."""
        self._gathered()
        return self._earlier + self._own.tokens_so_far

    def _begin_again(self, error: NotEnoughMemory, processed: int, **fewer: int) -> None:
        (now, *_) = fewer.values()
        log.warning("%s; going on with %d in another team", error, now)
        self._earlier = processed
        self._scoring = self._scoring.model_copy(update=fewer)
        self._own = self._make_own(self._scoring)

    @contextlib.contextmanager
    def _calling(self, method: str, *arguments: Any, **keywords: Any) -> Iterator[None]:
        """The followers do as the block does; if it fails they no longer know what is next."""
        try:
            with self._gathered().calling(Call(method, arguments, tuple(keywords.items()))):
                yield
        except BaseException:
            self.unload()
            raise

    def _gathered(self) -> Team:
        """The team, with the model in its memory once all have read their parts of it."""
        if self._team is None:
            self._team = self._gather()
            try:
                with self._team.calling(Call("model")):
                    _ = self._own.model
            except BaseException:
                self.unload()
                raise
        return self._team

    def _gather(self) -> Team:
        ranks = self._scoring.gpus_per_checkpoint
        gpus = gpus_of_followers(ranks) if self.device == "cuda" else [None] * (ranks - 1)
        end_team()
        store = open_store(PATIENCE)
        joinings = [
            Joining(rank, ranks, store.port, PATIENCE, self._scoring, self._checkpoint, self.device)
            for rank in range(1, ranks)
        ]
        _LEADING.append(Team(joinings, gpus))
        self._own.meet = functools.partial(join, store, 0, ranks, self.device, PATIENCE)
        return _LEADING[0]


def member(joining: Joining) -> EngineBackend:
    """What a follower calls: the engine, with its part of the model."""
    scoring = joining.scoring.model_copy(update={"device": joining.device})
    backend = EngineBackend(scoring, joining.checkpoint, lambda: None)
    store = find_store(joining.port, joining.patience)
    backend.meet = functools.partial(
        join, store, joining.rank, joining.ranks, joining.device, joining.patience
    )
    return backend


def gpus_of_followers(ranks: int) -> list[str | None]:
    """A name for CUDA_VISIBLE_DEVICES for each; the leader's is the first that this process sees.

    Raises ConfigError if it sees too few.
    """
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        listed = ",".join(map(str, range(torch.cuda.device_count())))
    names: list[str | None] = [name.strip() for name in listed.split(",") if name.strip()]
    if len(names) < ranks:
        raise ConfigError(
            f"{RANKS}: {ranks}, but this process sees {len(names)} GPUs; ask for as many in the profile "
            "(docs/slurm.md), or lower it"
        )
    return names[1:ranks]


def end_team() -> None:
    """Ends the followers of this process, if it leads any."""
    for team in _LEADING:
        team.end()
    _LEADING.clear()
    leave()


def _without(
    part: Mapping[AnswerKey, Answer], index: int, one: GenerationRequest
) -> GenerationRequest:
    """A request without the samples that are there, at its place among the others."""
    missing = (sample for sample in one.samples if AnswerKey(index, sample) not in part)
    return replace(one, samples=tuple(missing))


def _nothing(_: list[int]) -> str:
    """What followers decode: the leader tells them when an answer ends."""
    return ""
