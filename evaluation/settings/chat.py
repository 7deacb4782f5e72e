"""How a conversation becomes a prompt: settings of a suite that each of its items carries."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, JsonValue

from evaluation.settings.model import Settings, Text

_RESERVED = frozenset(
    "messages conversation chat_template tokenize add_generation_prompt continue_final_message padding "
    "truncation max_length return_tensors return_dict return_assistant_tokens_mask tokenizer_kwargs".split()
)
"""Arguments of `apply_chat_template` that are set for every prompt, or that change no text."""


def _free(given: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if taken := _RESERVED & given.keys():
        raise ValueError(
            f"{min(taken)} is set for every prompt; write names that the template reads"
        )
    return given


TemplateValues = Annotated[
    dict[Annotated[str, Field(pattern=r"^[^\W\d]\w*$")], JsonValue], AfterValidator(_free)
]
"""Variables that a chat template reads besides the messages, by name."""


class ChatSettings(Settings):
    """The settings that decide how turns of a conversation are written as one text."""

    chat_template: Text | None = Field(None, description="Jinja2; else the suite's or tokenizer's.")
    chat_template_kwargs: TemplateValues = Field(
        {},
        description="Variables that the chat template reads, such as `enable_thinking: false`; added to "
        "the suite's.",
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
