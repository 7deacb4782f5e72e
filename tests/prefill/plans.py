"""Plans for tests, without configuration files."""

from pathlib import Path
from typing import Any

from evaluation.files import write_json
from evaluation.prefill.entries import META, META_CHECKSUM, meta_checksum
from evaluation.settings.config import validate_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.suites import Suite, settled_suite


def make_plan(
    cache: Path,
    tokenizer: Path,
    *,
    mirrors: dict[str, str] | None = None,
    sequence_length: int = 16,
    use_fast: bool = True,
    prepend_bos: bool = False,
    **suite: Any,
) -> StagePlan:
    """The plan of a stage with one suite, of which the last arguments are the keys."""
    content: dict[str, Any] = {
        "results": str(cache.parent / "results"),
        "cache": str(cache),
        "stages": {"s": {"checkpoints": "nowhere", "steps": [1], "suites": ["none"]}},
        "tokenizer": {"name": str(tokenizer), "use_fast": use_fast, "prepend_bos": prepend_bos},
        "mirrors": mirrors or {},
    }
    config = validate_config(content, "the test")
    assert config.tokenizer
    return StagePlan(
        name="s",
        config=config,
        stage=config.stages["s"],
        suite=settled_suite(Suite.model_validate(suite)),
        tokenizer=config.tokenizer,
        sequence_length=sequence_length,
    )


def sign_meta(folder: Path, **content: Any) -> None:
    """Writes a meta.json with its own checksum, for files whose checksums are made up."""
    content = {"definition": "made", **content}
    write_json(folder / META, {**content, META_CHECKSUM: meta_checksum(content)})
