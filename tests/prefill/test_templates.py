"""Templates of data, and of Tier4 prompts: what they make, where answers end, and what is refused."""

import datetime
import math
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from evaluation.errors import ConfigError, EvaluationError, SourceError
from evaluation.prefill.caches import PromptCache, read_prompts
from evaluation.prefill.templates import (
    RowTemplates,
    compile_expression,
    compile_template,
    values_of,
)
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.plan import StagePlan
from evaluation.tokenizers.loading import load_tokenizer
from tests.prefill.plans import make_plan
from tests.tables import cases

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PLAIN = (
    "{{ bos_token }}{% for message in messages %}{{ message.role }}: {{ message.content }}"
    "{% if message.role == 'assistant' %}{{ eos_token }}{% endif %}\n{% endfor %}assistant:"
)
ONE: dict[str, Any] = {
    "category": "chat",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Naïve?"}],
    "checks": [{"check": "word_count", "at_most": 3}, {"check": "contains", "texts": ["yes"]}],
    "max_new_tokens": 9,
}


def plan_for(folder: Path, tokenizer: Path, **changes: Any) -> StagePlan:
    asked: dict[str, Any] = {"probes": {"one": ONE}, "chat_template": CHATML}
    return make_plan(folder / "cache", tokenizer, **asked | {"sequence_length": 300} | changes)


def made(*places: Path, **keys: Any) -> PromptCache:
    plan = plan_for(*places, **keys)
    PREFILLS["tier4"].make(plan, "s")
    return read_prompts(plan.cache_folder("tier4", plan.name))


def test_a_prompt_is_what_the_template_makes_of_it(tmp_path: Path, fast_folder: Path) -> None:
    cache = made(tmp_path, fast_folder)
    (prompt,) = cache.prompts
    text = (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nNaïve?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert prompt.prompt == text
    tokenizer = load_tokenizer(fast_folder, use_fast=True)
    assert tokenizer.decode(list(prompt.tokens)) == text
    assert (prompt.id, prompt.max_new_tokens) == ("one", 9)
    meta = cache.meta
    assert meta["chats"][0]["chat_template"] == CHATML
    assert meta["chats"][0]["stop"] == ["<|im_end|>"]  # its tokenizer writes the token in pieces
    assert meta["items"] == {"asked": 1, "used": 1, "left_out": {}}
    assert meta["max_tokens"] == len(prompt.tokens) + 9
    assert meta["vocab_size_needed"] > max(prompt.tokens)


def test_a_known_end_of_turn_becomes_an_id(tmp_path: Path, fast_folder: Path) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(fast_folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokenizer.chat_template = CHATML
    tokenizer.save_pretrained(tmp_path / "chat")
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    cache = made(tmp_path, tmp_path / "chat", chat_template=None)
    (chat,) = cache.meta["chats"]
    assert (chat["chat_template"], chat["stop"]) == (CHATML, [])
    assert cache.meta["eos_token_ids"] == sorted([tokenizer.eos_token_id, end])
    assert cache.meta["vocab_size_needed"] == end + 1
    assert cache.prompts[0].tokens.count(end) == 2


@pytest.mark.parametrize("prepend_bos", [False, True])
@pytest.mark.parametrize("kind", ["fast", "slow"])
@pytest.mark.parametrize("template", [PLAIN, CHATML])
def test_bos_stands_once_where_it_is_wanted(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, template: str, prepend_bos: bool
) -> None:
    folder = request.getfixturevalue(f"{kind}_folder")
    cache = made(
        tmp_path, folder, chat_template=template, use_fast=kind == "fast", prepend_bos=prepend_bos
    )
    bos = cache.meta["tokenizer"]["bos_token_id"]
    tokens = cache.prompts[0].tokens
    wanted = prepend_bos or template is PLAIN
    assert [at for at, token in enumerate(tokens) if token == bos] == ([0] if wanted else [])


def test_an_answer_gets_what_is_left_of_the_window(tmp_path: Path, fast_folder: Path) -> None:
    needed = made(tmp_path, fast_folder).meta["max_tokens"]
    probes: dict[str, Any] = {"fits": ONE, "long": {**ONE, "max_new_tokens": 36}}
    cache = made(tmp_path, fast_folder, probes=probes, sequence_length=needed)
    assert [prompt.max_new_tokens for prompt in cache.prompts] == [9, 9]
    assert cache.meta["shortened"] == ["long"]
    probes["long"]["max_new_tokens"] = 37
    with pytest.raises(ConfigError, match=r"no room for the answer to long; lower `max_new_tok"):
        made(tmp_path, fast_folder, probes=probes, sequence_length=needed)


@pytest.mark.parametrize("source", ["hi", "{{ strftime_now('%Y') }}, {{ date_string }}"])
def test_a_chat_template_without_the_messages(
    source: str, tmp_path: Path, fast_folder: Path
) -> None:
    with pytest.raises(SourceError, match=r"^chat_template: it writes nothing of the messages"):
        made(tmp_path, fast_folder, chat_template=source)


@pytest.mark.parametrize(("template", "message"), cases("prefill/odd", "chat_templates"))
def test_a_template_that_fails_names_the_probe(
    template: str, message: str, tmp_path: Path, fast_folder: Path
) -> None:
    plan = plan_for(tmp_path, fast_folder, chat_template=template)
    with pytest.raises(SourceError, match=rf"^probes\.one: {message}") as raised:
        PREFILLS["tier4"].make(plan, "s")
    assert "\n" not in str(raised.value)
    assert not plan.cache_folder("tier4", plan.name).exists()


VALUES = {
    "ratio": math.nan,
    "x": "a" * 40 + "b",
    "y": 7,
    "none": None,
    "raw": b"a",
    "day": datetime.date(2024, 1, 2),
}


@pytest.mark.parametrize(("source", "expected"), cases("prefill/odd", "templates"))
def test_templates_that_fail(source: str, expected: str) -> None:
    with pytest.raises(EvaluationError, match=rf"(?s)^tasks\.t\.context: .*{expected}") as raised:
        compile_template("tasks.t.context", source)(VALUES)
    assert source.replace("\\", "\\\\")[:40] in str(raised.value)
    assert "\n" not in str(raised.value)


ODD_ROW = {"Correct Answer": "B", "in": "me", "picture": b"raw", "x": 1}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ row['Correct Answer'] }}", "B"),
        ('{{ row["in"] ~ x }}', "me1"),
        ("{{ row.x }}{{ x }}", "11"),
        ("{% for name in ['in', 'x'] %}{{ row[name] }}{% endfor %}", "me1"),
        ("{{ row | length }}", "4"),
    ],
)
def test_a_field_of_any_name_is_in_the_row(source: str, text: str) -> None:
    assert compile_template("k", source)(values_of(ODD_ROW)) == text
    expression = {"gold": "row['Correct Answer']"}
    templates = RowTemplates("tasks.t", {"let": "row['in']"}, {"context": "{{ let }}"}, expression)
    values = templates.values(ODD_ROW)
    assert templates.expressions["gold"](values) == "B"
    assert templates.text("context", values) == "me"


INDEXES = {
    "{{ x[y] }}": "a",
    "{{ x[-1] }}": "b",
    "{{ x.split('a')[-1] }}": "b",
    "{{ x[:-1] | length }}": "40",
    "{{ x[hidden] }}": None,
    "{{ x[hidden | int] }}": None,
    "{{ [x][{'label': hidden}['label']] }}": None,
    "{{ x[y - 8] }}": None,
}
"""Templates, and what they write; None where a hidden label would count from the end."""


@pytest.mark.parametrize("source", INDEXES)
def test_a_hidden_label_is_no_index(source: str) -> None:
    compiled = (compile_template("k", source), compile_expression("k", source[2:-2]))
    for render in compiled:
        if (text := INDEXES[source]) is not None:
            assert str(render(VALUES | {"hidden": -1})) == text
            continue
        with pytest.raises(SourceError, match=r"the index -1 is negative, as hidden labels are"):
            render(VALUES | {"hidden": -1})
