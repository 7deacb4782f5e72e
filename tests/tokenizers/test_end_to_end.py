"""Each kind of tokenizer through every tier: what prefill stores, and what a trained model answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from evaluation.prefill.caches import read_documents, read_prompts, read_slice, read_task
from evaluation.prefill.tiers import PREFILLS
from evaluation.prefill.tokenizers import fetch_tokenizer
from evaluation.scoring.answers import AnswerKey, GenerationRequest, stopping_with
from evaluation.settings.plan import StagePlan
from evaluation.settings.verifiers import Program
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.verification.registry import verify
from tests.prefill.plans import make_plan
from tests.scoring import tiny
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
BODY = "    result = 0\n    for value in values:\n        result += value\n    return result\n"
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
def test_every_tier_has_the_ids_of_training_and_reads_its_answer(
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
    (document,) = read_documents(plan.cache_folder("tier5", "total")).values()
    if kind != "no byte fallback":  # which has no sign for the end of a line
        answer = _answered(ours, prompt.tokens, _behind(ours, prompt.tokens, f"{BODY}\nprint(1)\n"))
        assert answer == BODY
        assert verify(Program(kind="program"), document.document, answer).credit == 1.0


def _behind(tokenizer: LoadedTokenizer, prompt: Sequence[int], text: str) -> list[int]:
    """Ids that a model writes behind a prompt, whose last token may not end where the text begins."""
    for before in (PROMPT, "", "x"):
        start, whole = tokenizer.encode([before, before + text])
        if tokenizer.decode_answer(prompt, whole[len(start) :]) == text:
            return whole[len(start) :]
    raise AssertionError(text)


def _answered(tokenizer: LoadedTokenizer, prompt: Sequence[int], answer: Sequence[int]) -> str:
    """The text that a model generates which has been trained on this prompt and this answer alone."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_hidden_layers": 1, "max_position_embeddings": 512}
    sizes |= {"vocab_size": len(tokenizer), "initializer_range": 0.02}
    model = LlamaForCausalLM(LlamaConfig(**tiny.SHAPE | sizes))
    ids = torch.tensor([[*prompt, *answer]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(300):
        logits = model(input_ids=ids).logits[0, :-1]
        if bool((logits.argmax(-1) == ids[0, 1:])[len(prompt) - 1 :].all()):
            break
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, ids[0, 1:]).backward()
        optimizer.step()
    request = GenerationRequest("total", tuple(prompt), len(answer))
    stopping = stopping_with(tokenizer, (), STOP)
    model.eval().requires_grad_(False)
    given = tiny.answers(model, [request], stopping, batch=1, vocabulary=len(tokenizer))
    return given[AnswerKey(0, 0)].text
