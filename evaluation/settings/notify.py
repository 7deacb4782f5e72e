"""Settings of the message at the end of a run."""

import os
from typing import Annotated

from pydantic import AfterValidator, Field

from evaluation.settings.model import Fraction, Settings, Text


def _variable(name: str) -> str:
    if not name.isidentifier():
        raise ValueError(
            f"{name!r} is not the name of an environment variable; the address itself is a secret, so put "
            "it into one, such as SLACK_WEBHOOK_URL, and write that name here"
        )
    return name


def _address(text: str) -> str:
    if text.count("@") != 1 or any(char.isspace() or char in "<>," for char in text):
        raise ValueError(f"{text!r} is not one e-mail address")
    return text


class Notify(Settings):
    """Where a message goes when a run has ended: what to take, and what failed."""

    webhook: Annotated[Text, AfterValidator(_variable)] | None = Field(
        None,
        description="Environment variable that holds the address of a webhook, as Slack, Mattermost and Discord (`…/slack`) take it.",
    )
    email: tuple[Annotated[Text, AfterValidator(_address)], ...] = Field(
        (), description="Addresses that get an e-mail by the machine's `sendmail`."
    )
    command: Text | None = Field(
        None, description="Command that gets the message on its standard input."
    )
    seconds: Fraction = Field(30.0, gt=0, le=600, description="Time limit for each of them.")

    @property
    def webhook_address(self) -> str | None:
        """The webhook's address in the environment; None if the variable is not set."""
        return os.environ.get(self.webhook or "") or None
