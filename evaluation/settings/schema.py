"""JSON schemas of the settings, and Markdown tables of their keys.

A model whose keys occur in several places may have one table under its own heading: these places,
and models that inherit from it, link to that table.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from evaluation.errors import ConfigError
from evaluation.files import write_json, write_text
from evaluation.settings.config import Config
from evaluation.settings.generation import GenerationTask, Sampling
from evaluation.settings.model import models_in
from evaluation.settings.provided import ProviderChoices, ProviderTask
from evaluation.settings.sources import Slice, Source, Task
from evaluation.settings.suites import Probe, Suite
from evaluation.settings.tokenizer import Tokenizer

Parts = Mapping[type[BaseModel], str]
"""Models that have their own table, and its heading; variants of one thing share a heading."""

_NO_PARTS: Parts = MappingProxyType({})


def key_rows(
    model: type[BaseModel], prefix: str = "", parts: Parts = _NO_PARTS
) -> Iterator[tuple[str, str, str]]:
    """Yield key, default and description of every key of a model, depth-first, as Markdown.

    Args:
        prefix: Put before each key: the path to the model, with a dot at its end.
        parts: Models that have their own table, and its heading; their keys are left out.
    """
    inherited = {name for base in _bases(model, parts) for name in base.model_fields}
    for name, field in model.model_fields.items():
        if name in inherited:
            continue
        key = f"{prefix}{field.alias or name}{_placeholder(field.annotation)}"
        inner = tuple(models_in(field.annotation))
        sentences = dict.fromkeys([field.description or "", *_links(inner, parts)])
        yield f"`{key}`", _default(field), " ".join(sentences)
        for inner_model in inner:
            if inner_model not in parts:
                yield from key_rows(inner_model, f"{key}.", parts)


def key_table(model: type[BaseModel], parts: Parts) -> str:
    """Return the table of a model's keys; a line above it links to what the model inherits."""
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for row in key_rows(model, parts=parts):
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    bases = " and ".join(_link(parts[base]) for base in _bases(model, parts))
    return "\n".join([*([f"All keys of {bases}, and:", ""] if bases else []), *lines])


def part_tables(parts: Parts) -> Iterator[str]:
    """Yield the tables of `parts`, each under its heading."""
    for heading in dict.fromkeys(parts.values()):
        models = [model for model, title in parts.items() if title == heading]
        table = key_table(models[0], parts) if len(models) == 1 else _variants_table(models)
        yield f"#### {heading}\n\n{table}\n"


def _variants_table(models: Sequence[type[BaseModel]]) -> str:
    """Return a table with a row for each model: its name, its meaning, and its other keys."""
    selector = "check" if "check" in models[0].model_fields else "kind"
    lines = [f"| `{selector}` | meaning | keys |", "|---|---|---|"]
    for model in models:
        field = model.model_fields[selector]
        rows = (row for row in key_rows(model) if row[0] != f"`{selector}`")
        keys = "<br>".join(f"{key} ({_in_words(default)}): {words}" for key, default, words in rows)
        cells = (f"`{get_args(field.annotation)[0]}`", str(field.description), keys)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _in_words(default: str) -> str:
    return default if default == "required" else f"default {default}"


def _link(heading: str) -> str:
    """Return a link to a heading of the same page, with the address that GitHub gives it."""
    address = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    return f"[{heading}](#{address})"


def _links(models: Sequence[type[BaseModel]], parts: Parts) -> Iterator[str]:
    """Yield the sentences that link a key to the tables of its value's keys."""
    links = dict.fromkeys(_link(parts[model]) for model in models if model in parts)
    if links:
        yield f"Keys: {', or '.join(links)}."
    for model in models:
        if model not in parts:
            yield from (f"Also all keys of {_link(parts[base])}." for base in _bases(model, parts))


def _bases(model: type[BaseModel], parts: Parts) -> list[type[BaseModel]]:
    return [base for base in model.__mro__[1:] if base in parts]


def _placeholder(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is dict:
        return ".<name>"
    if origin is tuple:
        return "[]"
    if origin in (Union, UnionType):
        return next((part for arg in get_args(annotation) if (part := _placeholder(arg))), "")
    return ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
        return "see below"
    if isinstance(default, tuple):
        default = list(default)
    return f"`{json.dumps(default)}`"


BEGIN = "<!-- generated by `python -m evaluation schema`: begin -->"
END = "<!-- generated: end -->"
README = Path("config/README.md")
SCHEMAS: dict[Path, type[BaseModel]] = {
    Path("workflow/schemas/config.schema.json"): Config,
    Path("workflow/schemas/suite.schema.json"): Suite,
}

OF_SUITES: Parts = {
    Slice: "Slices (Tier2)",
    Task: "Tasks (Tier3)",
    ProviderChoices: "Tasks of lighteval and lm-evaluation-harness (Tier3)",
    Probe: "Probes (Tier4)",
    **dict.fromkeys(models_in(Probe.model_fields["checks"].annotation), "Checks of probes"),
    GenerationTask: "Generation tasks (Tier5)",
    ProviderTask: "Generation tasks of lighteval and lm-evaluation-harness (Tier5)",
    Sampling: "Sampling",
    **dict.fromkeys(models_in(GenerationTask.model_fields["verifiers"].annotation), "Verifiers"),
    Source: "Data source",
}
"""Parts of a suite that have their own table in the README."""


def generated_readme(text: str) -> str:
    """Return the text of `config/README.md` with a new generated part between the markers.

    Raises:
        ConfigError: A marker is missing.
    """
    if BEGIN not in text or END not in text:
        raise ConfigError(f"{README}: the lines {BEGIN!r} and {END!r} must both be there")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    of_config: Parts = {Tokenizer: "Tokenizer"}
    body = [
        f"### `config.yaml`\n\n{key_table(Config, of_config)}\n",
        *part_tables(of_config),
        f"### `task_suites/*.yaml`\n\n{key_table(Suite, OF_SUITES)}\n",
        *part_tables(OF_SUITES),
    ]
    return before + BEGIN + "\n" + "\n".join(body) + END + after


def write_generated(root: Path) -> list[Path]:
    """Write the schemas and the tables of keys; return the files.

    Raises:
        ConfigError: Before anything is written, for a folder that is not the project's root.
    """
    readme = root / README
    if not readme.is_file():
        raise ConfigError(f"--root {root}: has no {README}; name the root of the project")
    write_text(readme, generated_readme(readme.read_text(encoding="utf-8")))
    for path, model in SCHEMAS.items():
        write_json(root / path, model.model_json_schema())
    return [*(root / path for path in SCHEMAS), readme]
