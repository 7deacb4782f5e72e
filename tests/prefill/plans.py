"""Plans for tests, without configuration files."""

from pathlib import Path
from typing import Any

from evaluation.files import write_json
from evaluation.prefill.entries import META, META_CHECKSUM, meta_checksum
from evaluation.settings.config import validate_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.sources import Slice, Task
from evaluation.settings.suites import Suite


def make_plan(
    cache: Path,
    tokenizer: Path,
    *,
    slices: dict[str, dict[str, Any]] | None = None,
    tasks: dict[str, dict[str, Any]] | None = None,
    mirrors: dict[str, str] | None = None,
    sequence_length: int = 16,
    **tokenizer_options: bool,
) -> StagePlan:
    stage = {"checkpoints": "nowhere", "steps": [1], "suites": ["none"]}
    results = str(cache.parent / "results")
    content: dict[str, Any] = {"results": results, "cache": str(cache), "stages": {"s": stage}}
    content["tokenizer"] = {"name": str(tokenizer), **tokenizer_options}
    config = validate_config(content | {"mirrors": mirrors or {}}, "the test")
    assert config.tokenizer
    suite = Suite(
        slices={name: Slice(**fields) for name, fields in (slices or {}).items()},
        tasks={name: Task(**fields) for name, fields in (tasks or {}).items()},
    )
    return StagePlan(
        name="s",
        config=config,
        stage=config.stages["s"],
        suite=suite,
        tokenizer=config.tokenizer,
        sequence_length=sequence_length,
    )


def sign_meta(folder: Path, **content: Any) -> None:
    """Writes a meta.json with its own checksum, for files whose checksums are made up."""
    content = {"definition": "made", **content}
    write_json(folder / META, {**content, META_CHECKSUM: meta_checksum(content)})
