"""Every shipped suite prefills as it is, for windows of each usual length."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.__main__ import main
from evaluation.prefill import tokenizers
from evaluation.settings.config import load_config
from evaluation.settings.generation import GenerationTask
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.verification.pool import verify_all
from evaluation.verification.registry import VERIFIERS
from tests.conftest import ROOT
from tests.shipped.mirrors import write_mirrors
from tests.tables import sample

SUITES = ROOT / "task_suites"
LENGTHS = (2048, 4096, 8192)

Golds = dict[str, tuple[GenerationTask, Mapping[str, Any]]]
"""Tasks, with a document for each prompt, by the tasks' names."""


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_mirrors(tmp_path_factory.mktemp("shipped") / "mirrors")


@pytest.fixture(autouse=True)
def loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tokenizer is loaded once, not for each of a hundred entries."""
    load = functools.cache(tokenizers.load_tokenizer)
    monkeypatch.setattr(tokenizers, "load_tokenizer", load)


@pytest.fixture
def golds(monkeypatch: pytest.MonkeyPatch) -> Golds:
    """Golds that prefill would verify task by task, with a pool of processes for each."""
    given: Golds = {}

    def note(
        name: str, task: GenerationTask, documents: Mapping[str, Any], **options: object
    ) -> None:
        given[name] = task, documents

    monkeypatch.setattr("evaluation.prefill.generation.check_golds", note)
    monkeypatch.setattr("evaluation.prefill.tiers.check_cached_golds", lambda *entry: None)
    monkeypatch.setattr("evaluation.verification.nltk_data.fetch", lambda *needed: None)
    return given


def configured(folder: Path, mirrors: Path, tokenizer: Path, stages: Any, **changes: Any) -> Path:
    """The shipped configuration, with mirrors and a tokenizer of this machine."""
    content = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    content |= {"results": str(folder / "results"), "cache": str(folder / "cache")}
    content |= {"suites": str(SUITES), "mirrors": {"*": str(mirrors)}, **changes}
    content["tokenizer"] |= {"name": str(tokenizer)}
    content["stages"] |= stages
    path = folder / f"{content['sequence_length']}.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def each_suite(folder: Path) -> dict[str, Any]:
    """A stage for each shipped suite."""
    names = sorted(path.stem for path in SUITES.glob("*.yaml"))
    checkpoints = {"checkpoints": str(folder / "none"), "steps": [1]}
    return {name: {**checkpoints, "suites": [name]} for name in names}


def entries(plan: StagePlan) -> dict[tuple[str, str], dict[str, Any]]:
    """What was made for a stage: contents of the entries' meta.json."""
    return {
        (tier, name): json.loads((plan.cache_folder(tier, name) / "meta.json").read_text())
        for tier in plan.tiers
        for name in plan.cache_entries(tier)
    }


def test_all_suites(
    tmp_path: Path,
    mirrors: Path,
    smollm2: Path,
    golds: Golds,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The shipped configuration is as it is, but for its lengths; more stages have the other suites."""
    monkeypatch.setenv("SCRATCH", str(tmp_path))
    for length in sample(2, LENGTHS):
        stages = each_suite(tmp_path)
        config = configured(tmp_path, mirrors, smollm2, stages, sequence_length=length)
        assert main(["prefill", "--config", str(config)]) == 0
        for plan in plan_stages(load_config(config)).values():
            for entry, meta in entries(plan).items():
                assert meta["items"]["used"] > 0, entry
                longer = meta["items"]["left_out"].get("too_long", 0)
                assert longer == len(meta.get("too_long", ())), entry
    wrong = [verdict for verdict in verdicts(golds) if verdict[1] != 1]
    assert not wrong


def verdicts(golds: Golds) -> list[tuple[str, float | None, str | None]]:
    """Names of verifiers with the credit of each right answer, all from one pool."""
    jobs, names = [], []
    for name, (task, documents) in golds.items():
        for view, verifier in task.verifiers.items():
            for document in documents.values():
                right = VERIFIERS[verifier.kind].right(verifier, document)
                if right is not None and verifier.kind not in ("ifeval", "ifbench"):
                    jobs.append((verifier, document, right))
                    names.append(f"{name}.{view}")
    assert {name.partition(".")[0] for name in names} | WITHOUT_GOLDS == {*golds}
    return [
        (names[number], verdict.credit, verdict.reason)
        for number, verdict in verify_all(jobs, workers=2)
    ]


WITHOUT_GOLDS = {"ifeval", "ifbench", "ifeval_plain", "livecodebench_v5", "livecodebench_v6"}
"""Tasks without golds."""
