"""Where rows of data come from."""

from typing import Any, ClassVar

from pydantic import Field, model_validator

from evaluation.settings.model import Boolean, ExpandedPath, Settings, Text

MOST_SHOTS = 1000
"""Solved examples before a question."""


class Source(Settings):
    """Rows of a dataset on the hub, in a mirror of it, or in local files."""

    VIEWS: ClassVar[frozenset[str]] = frozenset({"group", "streaming"})
    """Keys that change neither what is fetched nor what is scored."""

    dataset: Text | None = Field(None, description="Hub id, also the name under `mirrors`.")
    config: Text | None = Field(None, description="Configuration (subset) of the dataset.")
    split: Text = Field("train", description="Split to read.")
    revision: Text | None = Field(None, description="Commit or branch of the dataset on the hub.")
    data_files: tuple[Text, ...] = Field((), description="Files inside the dataset's repository.")
    files: tuple[ExpandedPath, ...] = Field(
        (), description="Local Parquet, JSONL or text files, in place of a dataset."
    )
    streaming: Boolean = Field(
        False, description="Read row by row; falls back to a download where streaming fails."
    )

    def definition(self) -> dict[str, Any]:
        """All that decides what is fetched and scored."""
        return self.model_dump(mode="json", exclude=set(self.VIEWS))

    @model_validator(mode="after")
    def _one_origin(self) -> "Source":
        if (self.dataset is None) == (not self.files):
            raise ValueError("give either `dataset` or `files`")
        return self
