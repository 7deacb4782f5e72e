"""Gold answers checked against themselves."""

from collections.abc import Mapping
from typing import Any

from evaluation.settings.generation import GenerationTask


def check_golds(
    name: str, task: GenerationTask, documents: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raises SourceError for golds that their own verifiers do not accept."""
    raise NotImplementedError
