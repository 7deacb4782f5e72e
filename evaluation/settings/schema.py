"""JSON schemas of the settings, and a page of all keys that is made from the schemas."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from evaluation.errors import ConfigError
from evaluation.files import write_json, write_text
from evaluation.settings.config import Config
from evaluation.settings.suites import Suite

SCHEMAS: dict[Path, type[BaseModel]] = {
    Path("workflow/schemas/config.schema.json"): Config,
    Path("workflow/schemas/suite.schema.json"): Suite,
}
PAGE = Path("docs/keys.md")
_HEAD = """\
# All keys

`python -m evaluation schema` writes this page. [config/README.md](../config/README.md) explains how the
files are used. `[]` stands for a list, `.<name>` for any name.
"""
_VARIANTS = {"check": "Checks of probes", "kind": "Verifiers"}
"""Keys whose value decides which other keys there are, and the heading of the table of the values."""

Schema = Mapping[str, Any]


def keys_page() -> str:
    """Return `docs/keys.md`: a table for each kind of setting."""
    parts = [_HEAD]
    for title, model in (("config.yaml", Config), ("task_suites/*.yaml", Suite)):
        schema = model.model_json_schema()
        known = schema.pop("$defs")
        parts.append(f"## `{title}`\n\n{_table(schema, known)}")
        for name, inner in known.items():
            if "properties" in inner and not _selector(inner):
                parts.append(f"### {name}\n\n{inner['description']}\n\n{_table(inner, known)}")
        for key, heading in _VARIANTS.items():
            if variants := [inner for inner in known.values() if _selector(inner) == key]:
                parts.append(f"### {heading}\n\n{_variants(key, variants)}")
    return "\n".join(parts)


def _selector(schema: Schema) -> str | None:
    """Return the key by whose constant value a variant is known."""
    keys = schema.get("properties", {})
    return next((key for key in _VARIANTS if "const" in keys.get(key, {})), None)


def _table(schema: Schema, known: Mapping[str, Schema]) -> str:
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for key, value in schema["properties"].items():
        inner = re.findall(r"#/\$defs/(\w+)", json.dumps(value))
        inner = [name for name in inner if "properties" in known[name]]  # others have no heading
        headings = dict.fromkeys(
            _VARIANTS.get(_selector(known[name]) or "", name) for name in inner
        )
        links = (f"[{heading}](#{heading.lower().replace(' ', '-')})" for heading in headings)
        words = " ".join([value.get("description", ""), *links])
        lines.append(_row(f"`{key}{_form(value)}`", _default(key, schema), words))
    return "\n".join(lines) + "\n"


def _variants(key: str, schemas: list[Schema]) -> str:
    lines = [f"| `{key}` | meaning | keys |", "|---|---|---|"]
    for schema in schemas:
        keys = dict(schema["properties"])
        chosen = keys.pop(key)
        others = (
            f"`{name}{_form(value)}` ({_default(name, schema)}): {value.get('description', '')}"
            for name, value in keys.items()
        )
        lines.append(_row(f"`{chosen['const']}`", chosen["description"], "<br>".join(others)))
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _form(value: Schema) -> str:
    kinds = [one.get("type") for one in (value, *value.get("anyOf", ()), *value.get("oneOf", ()))]
    return "[]" if "array" in kinds else ".<name>" if "object" in kinds else ""


def _default(key: str, schema: Schema) -> str:
    if key in schema.get("required", ()):
        return "required"
    default = schema["properties"][key].get("default")
    return "" if isinstance(default, dict) and default else f"`{json.dumps(default)}`"


def write_generated(root: Path) -> list[Path]:
    """Write the schemas and the page of keys; return the files.

    Raises:
        ConfigError: Before anything is written, for a folder that is not the project's root.
    """
    if not (root / "config/README.md").is_file():
        raise ConfigError(f"--root {root}: has no config/README.md; name the root of the project")
    write_text(root / PAGE, keys_page())
    for path, model in SCHEMAS.items():
        write_json(root / path, model.model_json_schema())
    return [*(root / path for path in SCHEMAS), root / PAGE]
