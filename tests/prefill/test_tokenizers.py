"""No code that comes with a tokenizer is ever run."""

import json
import shutil
from pathlib import Path

import pytest

from evaluation.prefill.tokenizers import fetch_tokenizer, stage_tokenizer
from tests.prefill.plans import make_plan

CODE = """
from pathlib import Path
Path(__file__).with_name("sprung").touch()
from transformers import PreTrainedTokenizerFast as T
"""


@pytest.mark.parametrize("kind", ["fast", "slow"])
@pytest.mark.parametrize("name", ["T", "LlamaTokenizer"])
def test_code_of_others_is_never_run(
    kind: str,
    name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    folder = shutil.copytree(request.getfixturevalue(f"{kind}_folder"), tmp_path / "tokenizer")
    (folder / "code.py").write_text(CODE)
    path = folder / "tokenizer_config.json"
    content = {**json.loads(path.read_text()), "tokenizer_class": name}
    path.write_text(json.dumps(content | {"auto_map": {"AutoTokenizer": ["code.T", "code.T"]}}))
    plan = make_plan(tmp_path / "cache", folder, use_fast=kind == "fast")
    if (kind, name) != ("slow", "T"):  # its class may shift ids
        fetch_tokenizer(plan)
        assert stage_tokenizer(plan).encode(["a fox"])
    assert not list(tmp_path.rglob("sprung"))
