"""Settings of a stage's tokenizer."""

import os
from typing import Any

from pydantic import Field

from evaluation.settings.model import Boolean, FolderOrId, Settings, Text


class Tokenizer(Settings):
    """The tokenizer of a stage."""

    name: FolderOrId = Field(description="Hub id or folder.")
    revision: Text | None = Field(None, description="Commit or branch on the hub.")
    use_fast: Boolean = Field(True, description="False takes the slow (sentencepiece) one.")
    prepend_bos: Boolean = Field(False, description="Put BOS before every document and context.")
    also_known_as: tuple[Text, ...] = Field((), description="Other names of it in checkpoints.")

    @property
    def identity(self) -> dict[str, Any]:
        """The settings that decide what is fetched; a folder is the same however its path is written."""
        wanted = self.model_dump(exclude={"also_known_as"})
        is_folder = self.name.startswith(("/", ".")) or os.path.isdir(self.name)
        return wanted | {"name": os.path.realpath(self.name) if is_folder else self.name}
