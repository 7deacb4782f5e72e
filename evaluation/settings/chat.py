"""How a conversation becomes a prompt: settings of a suite that each of its items carries."""

from typing import Annotated, Any

from pydantic import Field, JsonValue

from evaluation.settings.model import Settings, Text

TemplateValues = dict[Annotated[str, Field(pattern=r"^[^\W\d]\w*$")], JsonValue]
"""Variables that a chat template reads besides the messages, by name."""


class ChatSettings(Settings):
    """The settings that decide how turns of a conversation are written as one text."""

    chat_template: Text | None = Field(None, description="Jinja2; else the suite's or tokenizer's.")
    chat_template_kwargs: TemplateValues = Field(
        {}, description="The template's variables, such as `enable_thinking: false`."
    )

    @property
    def chat_definition(self) -> dict[str, Any]:
        """The variables of the template, where there are any; the template has a key of its own."""
        given = self.chat_template_kwargs
        return {"chat_template_kwargs": dict(sorted(given.items()))} if given else {}


CHAT_KEYS = frozenset(ChatSettings.model_fields)
"""Keys that the identity of an item holds in another form."""


def check_chat(task: Settings, is_chat: bool) -> None:
    """Raise ValueError for a setting of conversations where a task has none."""
    for key in ("system", *sorted(CHAT_KEYS)):
        if getattr(task, key) and not is_chat:
            raise ValueError(f"`{key}` is of a chat; set `chat: true`, or remove it")
