"""A tiny model answers probes from prompt to rates."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from evaluation.prefill.probes import ProbeCache, Prompt
from evaluation.scoring.probes import answer_probes, generations
from evaluation.settings.suites import Probe
from tests.scoring import tiny

CHECKS = [
    {"check": "word_count", "at_least": 0, "at_most": 5},
    {"check": "strict_json", "matches": {"type": "object"}},
    {"check": "no_chat_artifacts"},
]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte; id 0 is `!`, and there is no padding token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytewise = Tokenizer(models.BPE(vocab={byte: i for i, byte in enumerate(alphabet)}, merges=[]))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytewise.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=bytewise, eos_token="<|end|>")
    made.add_special_tokens({"additional_special_tokens": ["<|turn|>"]})
    return made


@pytest.fixture(scope="module")
def model() -> PreTrainedModel:
    torch.manual_seed(3)
    shape = tiny.SHAPE | {"vocab_size": 300}  # padded: the tokenizer has 258
    return LlamaForCausalLM(LlamaConfig(**shape)).eval()


def cache_of(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> ProbeCache:
    prompts = []
    for number, text in enumerate(texts):
        messages = [{"role": "user", "content": text}]
        category = "odd" if number % 2 else "even"
        probe = Probe.model_validate(
            {"category": category, "messages": messages, "checks": CHECKS, "max_new_tokens": 12}
        )
        ids = tuple(tokenizer(text)["input_ids"])
        prompts.append(Prompt(f"p{number}", category, tuple(messages), probe.checks, 12, text, ids))
    return ProbeCache(prompts, {"eos_token_ids": [tokenizer.eos_token_id], "stop": ["q"]})


def test_answers_do_not_depend_on_the_batch(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    cache = cache_of(tokenizer, ["!", "!!!", "abc", "a longer prompt!", "naïve 🦊", "b"])
    scores = [answer_probes(model, tokenizer, cache, batch=size, device="cpu") for size in (1, 6)]
    assert scores[0] == scores[1]
    rows = scores[0].table.to_pylist()
    assert [row["id"] for row in rows] == [prompt.id for prompt in cache.prompts]
    assert [row["prompt_tokens"] for row in rows] == [len(p.tokens) for p in cache.prompts]
    assert set(scores[0].summary) == {"summary", "by_category", "prompts", "tokens_processed"}
    counted = sum(row["prompt_tokens"] + row["response_tokens"] for row in rows)
    assert scores[0].summary["tokens_processed"] == counted


def test_special_tokens_stay_visible_in_the_response(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    """A model that goes on with another turn must not look clean."""
    turn, mark = tokenizer.convert_tokens_to_ids("<|turn|>"), tokenizer.eos_token_id
    model = LlamaForCausalLM(LlamaConfig(**tiny.SHAPE | {"vocab_size": 300})).eval()
    model.lm_head = torch.nn.Linear(32, 300)
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.bias.zero_()
        model.lm_head.bias[[turn, mark, 280]] = torch.tensor([2.0, 1.0, 9.0])
    score = answer_probes(model, tokenizer, cache_of(tokenizer, ["a"]), batch=1, device="cpu")
    (row,) = generations(score)
    assert row["response"] == "<|turn|>" * 12
    assert (row["stop_reason"], row["response_tokens"], row["prompt"]) == ("length", 12, "a")
    assert score.summary["summary"]["chat_clean_rate"] == 0
    assert score.summary["summary"]["truncated_rate"] == 1
    assert score.summary["prompts"][0]["checks"]["no_chat_artifacts"] is False


def test_a_model_that_ends_at_once_passes_nothing(tokenizer: PreTrainedTokenizerFast) -> None:
    model = LlamaForCausalLM(LlamaConfig(**tiny.SHAPE | {"vocab_size": 300})).eval()
    model.lm_head = torch.nn.Linear(32, 300)
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.bias.zero_()
        model.lm_head.bias[tokenizer.eos_token_id] = 1.0
    cache = cache_of(tokenizer, ["a", "b"])
    score = answer_probes(model, tokenizer, cache, batch=2, device="cpu")
    assert [row["response_tokens"] for row in score.table.to_pylist()] == [0, 0]
    assert [row["stop_reason"] for row in score.table.to_pylist()] == ["eos", "eos"]
    assert score.summary["summary"]["all_checks_pass_rate"] == 0
    assert score.summary["summary"]["json_valid_rate"] == 0
