"""What a scoring job talks to: something that runs one checkpoint."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.engine.window import BlockNats, Request, Score

if TYPE_CHECKING:
    import torch


class Backend(Protocol):
    """Log-likelihoods, losses and answers of one checkpoint; loads nothing before it is asked.

    Every call raises NonFiniteError where the model gives NaN or infinity, and ScoringError where it
    cannot be run; both name the item.
    """

    @property
    def device(self) -> str:
        """Where it computes, e.g. `cuda`; part of every score's key."""

    @property
    def dtype(self) -> str:
        """What it computes in, e.g. `bfloat16`; likewise."""

    @property
    def layers(self) -> str:
        """How a model's layers run: `compiled` or `plain`; the same but for rounding."""

    @property
    def row_tokens(self) -> int:
        """Tokens of a forward pass; fewer than configured where memory was not enough."""

    @property
    def tokens_processed(self) -> int:
        """Tokens read so far; loads the model if it is not loaded."""

    def unload(self) -> None:
        """Leave the device's memory to others; what is asked next loads the model again."""

    def log_likelihoods(self, requests: Sequence[Request], *, label: str) -> list[Score]:
        """Return the log-likelihood of each continuation after its context, in their order."""

    def block_nats(
        self, tokens: "torch.Tensor", document_starts: "torch.Tensor | None", *, label: str
    ) -> BlockNats:
        """Return the nats of each block (blocks, length) of packed tokens, in all and by position."""

    def answers(
        self, requests: Sequence[GenerationRequest], stopping: Stopping, *, vocabulary: int
    ) -> Iterator[dict[AnswerKey, Answer]]:
        """Yield all samples of the requests, in parts as they are done.

        A sample depends on the checkpoint, the request's tokens, its sampling settings with their
        seed, and the sample's index; not on what is asked beside it.
        """
