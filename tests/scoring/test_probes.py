"""A tiny model answers probes from prompt to rates."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from evaluation.grading.probes import (
    AnsweredProbe,
    PromptRow,
    probe_jobs,
    probe_rows,
    summarize,
)
from evaluation.prefill.caches import Prompt
from evaluation.scoring.answers import GREEDY, GenerationRequest, stopping_with
from evaluation.scoring.completions import completion_table
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.stored_completions import StoredCompletion, prompt_key, sample_key
from evaluation.settings.suites import Probe
from evaluation.tokenizers.fast import FastTokenizer
from evaluation.verification.registry import verify
from tests.scoring import tiny
from tests.tokenizers.wrapped import wrapped

CHECKS = [
    {"check": "word_count", "at_least": 0, "at_most": 5},
    {"check": "strict_json", "matches": {"type": "object"}},
    {"check": "no_chat_artifacts"},
]


@pytest.fixture(scope="module")
def tokenizer() -> FastTokenizer:
    """One token a byte; id 0 is `!`, and there is no padding token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytewise = Tokenizer(models.BPE(vocab={byte: i for i, byte in enumerate(alphabet)}, merges=[]))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytewise.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=bytewise, eos_token="<|end|>")
    made.add_special_tokens({"additional_special_tokens": ["<|turn|>"]})
    return wrapped(made)


def probes_of(*texts: str) -> dict[str, Probe]:
    return {
        f"p{number}": Probe.model_validate(
            {
                "category": "odd" if number % 2 else "even",
                "messages": [{"role": "user", "content": text}],
                "checks": CHECKS,
                "max_new_tokens": 12,
            }
        )
        for number, text in enumerate(texts)
    }


def prompts_of(tokenizer: FastTokenizer, probes: dict[str, Probe]) -> list[Prompt]:
    texts = {name: probe.messages[0].content for name, probe in probes.items()}
    return [
        Prompt(id=name, max_new_tokens=12, prompt=text, tokens=tuple(tokenizer.encode([text])[0]))
        for name, text in texts.items()
    ]


def answered(model: PreTrainedModel, tokenizer: FastTokenizer, *asked: str) -> list[PromptRow]:
    """The rows of checked answers."""
    probes = probes_of(*asked)
    prompts = prompts_of(tokenizer, probes)
    backend = tiny.backend(Engine(model, row_tokens=64, device="cpu"))
    stopping = stopping_with(tokenizer, [tokenizer.eos_token_id], ["q"])
    asked_once = {prompt_key(prompt): prompt for prompt in prompts}
    requests = [
        GenerationRequest(key, prompt.tokens, prompt.max_new_tokens, (0,), GREEDY, stopping)
        for key, prompt in asked_once.items()
    ]
    answers = backend.answers(requests, vocabulary=tokenizer.rows)
    rows = [row for part in answers for row in completion_table(requests, part)[0].to_pylist()]
    columns = ("text", "stop_reason", "prompt_tokens", "completion_tokens")
    stored = {row["key"]: StoredCompletion(*(row[name] for name in columns)) for row in rows}
    keys = {prompt.id: sample_key(prompt_key(prompt), 0) for prompt in prompts}
    texts = {prompt.id: prompt.prompt for prompt in prompts}
    answered = {
        name: AnsweredProbe(probes[name], texts[name], stored[key], None)
        for name, key in keys.items()
    }
    verdicts = [verify(*job) for job in probe_jobs(answered).values()]
    return probe_rows(answered, verdicts)


def stubborn(logits: dict[int, float]) -> PreTrainedModel:
    """A model with the same logits after any text; those not named are 0."""
    model = LlamaForCausalLM(LlamaConfig(**tiny.SHAPE | {"vocab_size": 300})).eval()
    model.lm_head = torch.nn.Linear(32, 300)
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.bias.zero_()
        for token, value in logits.items():
            model.lm_head.bias[token] = value
    return model


def test_special_tokens_stay_visible_in_the_response(tokenizer: FastTokenizer) -> None:
    """A model that goes on with another turn must not look clean."""
    turn, mark = tokenizer.vocabulary["<|turn|>"], tokenizer.eos_token_id
    model = stubborn({turn: 2.0, mark: 1.0, 280: 9.0})  # no token of the tokenizer's is 280
    rows = answered(model, tokenizer, "abc")
    (row,) = rows
    assert row["response"] == "<|turn|>" * 12
    assert (row["stop_reason"], row["response_tokens"], row["prompt"]) == ("length", 12, "abc")
    found = summarize(rows)
    assert found["summary"]["chat_clean_rate"] == 0
    assert found["summary"]["truncated_rate"] == 1
    assert found["prompts"][0]["checks"]["no_chat_artifacts"]["passed"] is False


def test_an_answer_is_known_by_its_prompt_alone(tokenizer: FastTokenizer) -> None:
    """Neither its name nor its checks make a model answer again; its length does."""
    first, second = prompts_of(tokenizer, probes_of("a", "a"))
    assert prompt_key(first) == prompt_key(second)
    assert prompt_key(first.model_copy(update={"max_new_tokens": 13})) != prompt_key(first)
