"""Tier4: prompts for an SFT model and the checks of its answers."""

from typing import Any, Literal

from pydantic import Field, model_validator

from evaluation.settings.checks import Check
from evaluation.settings.model import LARGEST_WINDOW, Boolean, Integer, Settings
from evaluation.settings.names import Label


class Message(Settings):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"] = Field(description="Role of the speaker.")
    content: str = Field(description="Text of the message.")


class Probe(Settings):
    """A prompt for an SFT model and the checks its answer must pass."""

    category: Label = Field(description="Heading it is reported under.")
    messages: tuple[Message, ...] = Field(min_length=1, description="The conversation so far.")
    checks: tuple[Check, ...] = Field(min_length=1, description="What the answer must pass.")
    max_new_tokens: Integer = Field(
        256, gt=0, le=LARGEST_WINDOW, description="Maximum tokens of the answer."
    )
    headline: Boolean = Field(
        True,
        description="Whether it counts for the rates over all prompts, or only for those of its category. `false` is for answers whose meaning no check can verify.",
    )

    def definition(self) -> dict[str, Any]:
        """What the model is asked; its answer is stored, and graded whenever the checks change."""
        return self.model_dump(mode="json", include={"messages", "max_new_tokens"})

    @model_validator(mode="after")
    def _asks(self) -> "Probe":
        if self.messages[-1].role != "user":
            raise ValueError("the last message must be the user's, as the model answers it")
        if not self.messages[-1].content.strip():
            raise ValueError("the last message is empty, so that there is nothing to answer")
        return self
