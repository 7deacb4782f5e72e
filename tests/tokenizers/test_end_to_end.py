"""Each kind of tokenizer through every tier: what prefill stores."""

from pathlib import Path
from typing import Any

import pytest

from evaluation.prefill.caches import read_prompts, read_slice, read_task
from evaluation.prefill.tiers import PREFILLS
from evaluation.prefill.tokenizers import fetch_tokenizer
from evaluation.settings.plan import StagePlan
from tests.prefill.plans import make_plan
from tests.tokenizers.kinds import CHATML, JSON, PIECES, TURNS
from tests.tokenizers.test_kinds import LIKE_PIECES, loaded, pieces, raw
from tests.verification.sandbox.references import needs_sandbox
from tests.workflow.world import write_rows

LINES = [
    "  The fox\n\tjumps: 42!\n\n",
    "def f(x):\n    return x\n",
    " naïve 日本語 🦊 again",
] * 20
CONTEXT, CHOICES = "Question: who jumps?\nAnswer:", [" the fox", " the lazy dog", " naïve 日本語"]
PROMPT = 'def total(values):\n    """Add values."""\n'
STOP = ["\nclass", "\ndef", "\n#", "\nif", "\nprint"]
ASKED = {"role": "user", "content": " Who jumps?\n  1"}
CHAT = f"{TURNS[0]}user\n Who jumps?\n  1{TURNS[1]}\n{TURNS[0]}assistant\n"
ROW = {"prompt": PROMPT, "test": "def check(candidate):\n    assert candidate([1, 2]) == 3\n",
       "entry_point": "total", "text": CONTEXT, "choices": CHOICES}  # fmt: skip
PROGRAM = {"prompt": "{{ prompt }}", "chat": False, "stop": STOP, "max_new_tokens": 200,
           "document": {"prefix": "prompt", "tests": "test", "entry_point": "entry_point"},
           "verifiers": {"passes": {"kind": "program"}}}  # fmt: skip


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Documents of programs are checked by processes, which are reached by a socket."""


def plan_of(folder: Path, tokenizer: Path) -> StagePlan:
    """A stage with a slice, a task, a probe and a generation task."""
    write_rows(folder / "lines.jsonl", [{"text": line} for line in LINES])
    write_rows(folder / "rows.jsonl", [ROW])
    rows = {"files": [str(folder / "rows.jsonl")]}
    probe: dict[str, Any] = {"category": "c", "messages": [ASKED], "max_new_tokens": 9}
    plan = make_plan(
        folder / "cache",
        tokenizer,
        sequence_length=512,
        slices={"lines": {"files": [str(folder / "lines.jsonl")], "tokens": 512}},
        tasks={"who": {**rows, "context": "{{ text }}", "choices": "choices", "gold": "0"}},
        probes={"asked": {**probe, "checks": [{"check": "no_chat_artifacts"}]}},
        generation_tasks={"total": {**rows, **PROGRAM}},
        chat_template=CHATML,
    )
    fetch_tokenizer(plan)
    for tier, name in (("tier2", "lines"), ("tier3", "who"), ("tier4", ""), ("tier5", "total")):
        PREFILLS[tier].make(plan, name)
    return plan


def reference(folder: Path, kind: str, text: str) -> list[int]:
    """The ids of the library that makes training data; ours for kinds with rules of transformers 4."""
    if kind in JSON:
        return list(raw(folder).encode(text, add_special_tokens=False).ids)
    ours = loaded(folder)
    is_plain = kind in LIKE_PIECES and not ours.whole_tokens & {*ours.encode([text])[0]}
    return list(pieces(folder).encode(text)) if is_plain else ours.encode([text])[0]


@needs_sandbox
@pytest.mark.parametrize("kind", [*PIECES, *JSON])
def test_every_tier_has_the_ids_of_training(
    kinds: dict[str, Path], kind: str, tmp_path: Path
) -> None:
    folder, plan = kinds[kind], plan_of(tmp_path, kinds[kind])
    ours = loaded(folder)
    assert ours.eos_token_id is not None
    documents = [[*reference(folder, kind, line), ours.eos_token_id] for line in LINES]
    stored = read_slice(plan.cache_folder("tier2", "lines")).tokens.flatten().tolist()
    expected = [id for document in documents for id in document]
    assert stored == expected[:512]

    (item,) = read_task(plan.cache_folder("tier3", "who")).items
    assert {one.text.strip() for one in item.candidates} == {one.strip() for one in CHOICES}
    for candidate in item.candidates:
        context = item.contexts[candidate.context]
        assert list(context.tokens) == reference(folder, kind, context.text)
        whole = reference(folder, kind, context.text + candidate.text)
        assert [*context.tokens, *candidate.tokens] == whole

    (probe,) = read_prompts(plan.probes_folder).prompts
    assert list(probe.tokens) == reference(folder, kind, CHAT)

    (prompt,) = read_prompts(plan.cache_folder("tier5", "total")).prompts
    assert list(prompt.tokens) == reference(folder, kind, PROMPT)
