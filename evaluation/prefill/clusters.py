"""Sampled groups of a provider's prompts, such as the questions on one passage.

A suite's `cluster` is a template over the fields of the provider's document. Without it, tasks that are
known to ask several questions on one text, or many instances of one template, are grouped by the fields
of CLUSTER_FIELDS that their documents have.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.templates import RowTemplates

CLUSTER_FIELDS: Mapping[str, tuple[str, ...]] = {
    r"drop\b.*": ("passage_id", "section_id", "passage", "context"),
    r"(coqa|quac)\b.*": ("story_id", "story", "context"),
    r"squad.*": ("context", "passage"),
    r"gsm[-_]symbolic.*": ("original_id", "template_id"),
}
"""Fields that name a prompt's group, the first one that its document has, by names of tasks."""


def provided_clusters(
    key: str, task: str, template: str | None, documents: Sequence[Mapping[str, Any]]
) -> list[str | None]:
    """Return the cluster of each document of a provider's task; None for an independent one.

    `template` is the suite's, and None without one.

    Raises:
        SourceError: The template writes nothing for a document.
        ConfigError: The template does not parse.
    """
    if template is not None:
        templates = RowTemplates(key, {}, {"cluster": template}, {})
        return [_rendered(key, templates, document) for document in documents]
    known = (fields for name, fields in CLUSTER_FIELDS.items() if re.fullmatch(name, task))
    fields = next(known, ())
    return [next(_known(document, fields), None) for document in documents]


def _rendered(key: str, templates: RowTemplates, fields: Mapping[str, Any]) -> str:
    name = str(templates.text("cluster", templates.values(dict(fields))) or "")
    if not name.strip():
        raise SourceError(
            f"{key}.cluster writes nothing for a document, which has {', '.join(fields)}; name one of these"
        )
    return name


def _known(document: Mapping[str, Any], fields: Sequence[str]) -> Iterator[str]:
    """Yield the fields that a document has, itself or among its metadata."""
    more = document.get("metadata")
    places = [document, more if isinstance(more, Mapping) else {}]
    for field in fields:
        for place in places:
            if place.get(field) not in (None, ""):
                yield str(place[field])
