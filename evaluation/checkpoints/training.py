"""What a Nanotron `config.yaml` says of how a model was trained, beside its model's configuration.

    model.init_method.use_mup                   whether attention is scaled as muP scales it
    tokenizer.tokenizer_name_or_path            null if it was not recorded
    tokens.sequence_length
    general.step

Its trainer always writes the first three sections. Where one is missing the file was cut, and
what it would have said must not be guessed: without `use_mup` a model is scored 30 % off.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.checkpoints.documents import is_there, parse_yaml, read_text
from evaluation.checkpoints.keys import Keys
from evaluation.errors import CheckpointError, IncompleteCheckpoint


@dataclass(frozen=True)
class Training:
    """A training configuration, `content` as it was written."""

    content: dict[str, Any]
    use_mup: bool
    tokenizer_name: str | None
    sequence_length: int
    step: int | None


def read_training(folder: Path) -> Training | None:
    """Reads `folder/config.yaml`; None if there is none.

    Raises IncompleteCheckpoint for a file that is cut, CheckpointError for one that is no training
    configuration.
    """
    path = folder / "config.yaml"
    if not is_there(path):
        return None
    content = parse_yaml(path)
    if not read_text(path).endswith("\n"):
        raise IncompleteCheckpoint(
            f"{path}: its last line does not end, so the file was cut; copy it again, or end the "
            "line if nothing is missing"
        )
    method = _section(_section(content, path, "model"), path, "init_method", "model.")
    tokenizer = content.get("tokenizer", {})  # null: it was trained on ids, without a tokenizer
    return Training(
        content=content,
        use_mup=Keys(method, str(path), "model.init_method.").flag("use_mup", False),
        tokenizer_name=None if tokenizer is None else _tokenizer_name(content, path),
        sequence_length=Keys(_section(content, path, "tokens"), str(path), "tokens.").count(
            "sequence_length"
        ),
        step=_step(content, path),
    )


def _section(table: dict[str, Any], path: Path, name: str, above: str = "") -> dict[str, Any]:
    found = table.get(name)
    if isinstance(found, dict):
        return found
    if name not in table or found is None:
        raise IncompleteCheckpoint(
            f"{path}: `{above}{name}` is missing, so the file was cut or is not a trainer's; copy it "
            "again"
        )
    raise CheckpointError(
        f"{path}: `{above}{name}` is {str(found)[:60]!r}, expected a table; copy the file again"
    )


def _tokenizer_name(content: dict[str, Any], path: Path) -> str | None:
    section = _section(content, path, "tokenizer")
    if "tokenizer_name_or_path" not in section:
        raise IncompleteCheckpoint(
            f"{path}: `tokenizer.tokenizer_name_or_path` is missing, so the file was cut or is not "
            "a trainer's; copy it again"
        )
    return Keys(section, str(path), "tokenizer.").text("tokenizer_name_or_path")


def _step(content: dict[str, Any], path: Path) -> int | None:
    general = content.get("general")
    if not isinstance(general, dict):
        return None
    step = general.get("step")
    if step is not None and (type(step) is not int or not 0 <= step < 2**63):
        raise CheckpointError(
            f"{path}: `general.step` is {str(step)[:60]!r}, expected a number; copy the file again"
        )
    return step
