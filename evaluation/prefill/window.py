"""The window for generation: how many tokens a prompt and its answer may have together."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import model_positions, recorded_value

log = logging.getLogger(__name__)

LEAST_SHARE = 0.25
"""Smallest share of `max_new_tokens` for which a prompt is kept: a shorter answer is hardly one."""

LEAST_TOKENS = 1024
"""Room that is always enough, as long chains of thought would otherwise fit no small model's window."""

TRAINED = "tokens.sequence_length"


@dataclass(frozen=True)
class Window:
    """A number of tokens, and the largest that the model was trained on, where it is recorded."""

    tokens: int
    trained: int | None

    def room(self, prompt: int, wanted: int) -> int | None:
        """Return how many of the `wanted` new tokens can follow a prompt; None if too few are left."""
        left = min(wanted, self.tokens - prompt)
        return left if left >= max(1, min(LEAST_SHARE * wanted, LEAST_TOKENS)) else None


def generation_window(plan: StagePlan) -> Window:
    """Return `generation.window`, or a default.

    It is the positions of the model in the training configuration or in the first checkpoint, or
    where there is neither, the stage's sequence length.

    Raises:
        ConfigError: The model's configuration in that checkpoint cannot be read.
    """
    trained = recorded_value(plan.config, plan.name, plan.stage, TRAINED)
    if plan.config.generation.window:
        return Window(plan.config.generation.window, trained)
    positions = model_positions(plan.config, plan.name, plan.stage)
    return Window(max(plan.sequence_length, positions or 0), trained)


def report_lengths(name: str, window: Window, longest: int, shortened: Iterable[str]) -> None:
    """Log what the window means for a task's answers, the `longest` of which has its prompt, too."""
    if count := len([*shortened]):
        log.warning(
            "%s: %d prompts leave fewer than `max_new_tokens` in the window of %d tokens; their answers "
            "may be cut off", name, count, window.tokens,
        )  # fmt: skip
    if window.trained is not None and longest > window.trained:
        log.warning(
            "%s: prompt and answer have up to %d tokens, but the model was trained on sequences of %d; "
            "late parts of such answers say little", name, longest, window.trained,
        )  # fmt: skip
