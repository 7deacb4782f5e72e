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
Schema = Mapping[str, Any]


def keys_page() -> str:
    parts = [_HEAD]
    for title, model in (("config.yaml", Config), ("task_suites/*.yaml", Suite)):
        schema = model.model_json_schema()
        known = {n: d for n, d in schema.pop("$defs").items() if "properties" in d}
        parts.append(f"## `{title}`\n\n{_table(schema, known)}")
        for name, definition in known.items():
            about = f"{definition['description']}\n\n" if "description" in definition else ""
            parts.append(f"### {name}\n\n{about}{_table(definition, known)}")
    return "\n".join(parts)


def _table(schema: Schema, known: Mapping[str, Schema]) -> str:
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for key, value in schema["properties"].items():
        inner = dict.fromkeys(re.findall(r"#/\$defs/(\w+)", json.dumps(value)))
        links = [f"[{name}](#{name.lower()})" for name in inner if name in known]
        kinds = [
            kind.get("type") for kind in (value, *value.get("anyOf", ()), *value.get("oneOf", ()))
        ]
        form = "[]" if "array" in kinds else ".<name>" if "object" in kinds else ""
        is_free = key in schema.get("required", ()) and "const" not in value
        default = f"`{json.dumps(value.get('const', value.get('default')))}`"
        words = " ".join([value.get("description", ""), *links])
        cells = (f"`{key}{form}`", "required" if is_free else default, words)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def write_generated(root: Path) -> list[Path]:
    """Write the schemas and the page of keys; return the files; raise ConfigError on a mistake."""
    if not (root / "config/README.md").is_file():
        raise ConfigError(f"--root {root}: has no config/README.md; name the root of the project")
    write_text(root / PAGE, keys_page())
    for path, model in SCHEMAS.items():
        write_json(root / path, model.model_json_schema())
    return [*(root / path for path in SCHEMAS), root / PAGE]
