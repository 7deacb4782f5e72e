"""Conversations are written as their suite and item say, and what a template leaves out is told."""

from pathlib import Path
from typing import Any

import pytest

from evaluation.prefill.caches import read_prompts
from evaluation.prefill.prompts import Chat
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.suites import Message
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.loading import load_tokenizer
from tests.prefill.plans import make_plan
from tests.prefill.test_caches import PROBE
from tests.workflow.world import write_rows

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% if enable_thinking is defined and not enable_thinking %}"
    "<think></think>{% endif %}{% endif %}"
)
OTHER = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
THOUGHT = {"chat_template_kwargs": {"enable_thinking": False}}
TASK: dict[str, Any] = {
    "prompt": "{{ text }}",
    "chat": True,
    "max_new_tokens": 9,
    "document": {"gold": "text"},
    "verifiers": {"exact": {"kind": "pattern", "pattern": "(.+)"}},
}

RENDERED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, "<user>Who?</s><assistant>"),
    ({"chat_template": OTHER}, {}, "[user]Who?"),
    (THOUGHT, {}, "<user>Who?</s><assistant><think></think>"),
    ({"system": "Be brief."}, {}, "<system>Be brief.</s><user>Who?</s><assistant>"),
    ({"system": "No."}, {"system": "Yes."}, "<system>Yes.</s><user>Who?</s><assistant>"),
]
"""Keys of a suite, of its item, and the prompt."""


@pytest.fixture
def tokenizer(fast_folder: Path) -> LoadedTokenizer:
    return load_tokenizer(fast_folder, use_fast=True)


@pytest.mark.parametrize(("suite", "item", "expected"), RENDERED)
def test_an_item_decides_before_its_suite(
    suite: dict[str, Any],
    item: dict[str, Any],
    expected: str,
    tmp_path: Path,
    fast_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evaluation.prefill.generation.check_golds", lambda *_, **__: None)
    write_rows(tmp_path / "rows.jsonl", [{"text": "Who?"}])
    asked = {"files": [str(tmp_path / "rows.jsonl")], **TASK, **item}
    probes = {"p": PROBE} if not item else {}
    settings = {"chat_template": TEMPLATE, "sequence_length": 64} | suite
    plan = make_plan(
        tmp_path / "cache", fast_folder, generation_tasks={"t": asked}, probes=probes, **settings
    )
    for tier, name in (("tier5", "t"), ("tier4", "s"))[: 2 - bool(item)]:
        PREFILLS[tier].make(plan, name)
        (prompt,) = read_prompts(plan.cache_folder(tier, name)).prompts
        assert prompt.prompt == expected


@pytest.mark.parametrize(
    ("name", "is_read"), [("enable_thinking", True), ("enable_thinkin", False), ("thinking", False)]
)
def test_a_misspelt_variable_is_told(
    name: str, is_read: bool, caplog: pytest.LogCaptureFixture, tokenizer: LoadedTokenizer
) -> None:
    template = "{% if enable_thinking %}<think>{% endif %}"
    Chat(tokenizer, template, {name: True}, "probes.a")
    assert (f"reads no {name}" in caplog.text) != is_read


def test_names_text_of_messages_that_a_prompt_lacks(
    caplog: pytest.LogCaptureFixture, tokenizer: LoadedTokenizer
) -> None:
    """As templates that drop the thinking of earlier turns; white space may differ."""
    asked = Message(role="user", content="2  +\n2?")
    solved = Message(role="assistant", content="<think>4, I think.</think>\n\n4")
    for template, is_lost in (
        (TEMPLATE, False),
        (TEMPLATE.replace("m.content", "m.content[26:]"), True),
    ):
        chat = Chat(tokenizer, template, {}, "generation_tasks.sums")
        assert chat.text("sums/0", [asked, solved])
        chat.warn_of_lost()
        assert ("generation_tasks.sums" in caplog.text and "2  +" in caplog.text) == is_lost
