"""JSON schemas of the settings, and a page of all keys that is made from the schemas."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Mapping
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

`python -m evaluation schema` writes this page. [config/README.md](../config/README.md) explains how the files
are used. `[]` stands for a list, `.<name>` for any name, `*` for a required key, `=` for a default.
"""
_KINDS = ("check", "kind")
Schema = Mapping[str, Any]


def keys_page() -> str:
    """Return the page: objects with a list of their keys; then checks and verifiers, a line each."""
    parts, first = [_HEAD], dict[str, str]()
    for title, model in (("config.yaml", Config), ("task_suites/*.yaml", Suite)):
        schema = model.model_json_schema()
        known = {n: d for n, d in schema.pop("$defs").items() if "properties" in d}
        kinds = {n: kind for n, d in known.items() if (kind := _kind(d))}
        objects = {title: schema, **{name: known[name] for name in known if name not in kinds}}
        for name, definition in objects.items():
            about = definition.get("description", "") if name != title else ""
            lines = _keys(definition, objects)
            lines = lines if name == title else _once(lines, name, first)
            keys = "\n".join(f"- {line}" for line in lines)
            mark = "##" if name == title else "###"
            parts.append(f"{mark} {name}\n\n{about}\n\n{keys}\n".replace("\n\n\n\n", "\n\n"))
        if kinds:
            lines = [f"- {kind} {' '.join(_keys(known[name], ()))}" for name, kind in kinds.items()]
            parts.append("### Checks and verifiers\n\n" + "\n".join(map(str.rstrip, lines)) + "\n")
    return "\n".join(parts)


def _once(lines: list[str], name: str, first: dict[str, str]) -> list[str]:
    """Return the lines that no earlier object has, then a line for each such object with their keys."""
    repeated = defaultdict[str, list[str]](list)
    for line in lines:
        if (owner := first.setdefault(line, name)) != name:
            repeated[owner].append(line.split(" ")[0])
    return [line for line in lines if first[line] == name] + [
        f"{', '.join(keys)}: as in [{owner}](#{owner.lower()})" for owner, keys in repeated.items()
    ]


def _kind(definition: Schema) -> str | None:
    """Return the name and meaning of a check or verifier; None for other objects."""
    kinds = [v for k, v in definition["properties"].items() if k in _KINDS and "const" in v]
    return f"`{kinds[0]['const']}`: {kinds[0]['description']}" if kinds else None


def _keys(schema: Schema, linked: Collection[str]) -> list[str]:
    """Return each key but that of the kind, with its form, default and meaning."""
    lines = []
    for key, value in schema["properties"].items():
        inner = dict.fromkeys(re.findall(r"#/\$defs/(\w+)", json.dumps(value)))
        links = [f"[{name}](#{name.lower()})" for name in inner if name in linked]
        kinds = [k.get("type") for k in (value, *value.get("anyOf", ()), *value.get("oneOf", ()))]
        form = "[]" if "array" in kinds else ".<name>" if "object" in kinds else ""
        if (default := value.get("default")) not in (None, []) and not isinstance(default, dict):
            form += f"={json.dumps(default)}"
        form += "*" if key in schema.get("required", ()) else ""
        about = value.get("description", "")
        lines += [] if "const" in value else [" ".join([f"`{key}{form}`", about, *links]).rstrip()]
    return lines


def write_generated(root: Path) -> list[Path]:
    """Write the schemas and the page of keys; return their files."""
    if not (root / "config/README.md").is_file():
        raise ConfigError(f"--root {root}: has no config/README.md; name the root of the project")
    write_text(root / PAGE, keys_page())
    for path, model in SCHEMAS.items():
        write_json(root / path, model.model_json_schema())
    return [*(root / path for path in SCHEMAS), root / PAGE]
