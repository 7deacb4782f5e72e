"""Settings of a stage's tokenizer."""

from pydantic import Field

from evaluation.settings.model import Boolean, ExpandedPath, FolderOrId, Settings, Text


class Tokenizer(Settings):
    """The tokenizer of a stage."""

    name: FolderOrId = Field(description="Hub id or folder.")
    revision: Text | None = Field(None, description="Commit or branch on the hub.")
    use_fast: Boolean = Field(True, description="False takes the slow (sentencepiece) one.")
    prepend_bos: Boolean = Field(False, description="Put BOS before every document and context.")
    also_known_as: tuple[Text, ...] = Field(
        (), description="Other names that checkpoints give for this same tokenizer."
    )
    check_texts: ExpandedPath | None = Field(
        None,
        description="JSONL file of texts for the tokenizer's check; a line is a text, or "
        "`{text, ids}` with the ids that training had.",
    )
