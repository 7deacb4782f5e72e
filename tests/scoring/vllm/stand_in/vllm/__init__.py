"""In place of vLLM: the few of its names that are used, by a transformers model, token by token.

The variable DIE_AFTER ends the process once so many prompts are answered. Answers end in another order
than they were begun.
"""

import os
from types import SimpleNamespace
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

__version__ = "0.0"
DIE_AFTER = int(os.environ.get("DIE_AFTER", "1000000"))


class SamplingParams(SimpleNamespace):
    def __init__(self, **told: Any) -> None:
        assert set(told) == {
            *("max_tokens", "temperature", "top_p", "top_k", "seed", "stop", "stop_token_ids"),
            *("ignore_eos", "include_stop_str_in_output", "skip_special_tokens"),
            *("spaces_between_special_tokens", "allowed_token_ids"),
        }
        super().__init__(**told)


class LLM:
    def __init__(self, *, model: str, tokenizer: str, dtype: str, **told: Any) -> None:
        assert set(told) == {
            *("max_model_len", "gpu_memory_utilization", "generation_config"),
            *("enable_prefix_caching", "trust_remote_code"),
            *("enforce_eager", "enable_chunked_prefill"),
        }
        assert told["enforce_eager"]
        assert not told["enable_chunked_prefill"]
        self.window = told["max_model_len"]
        kind = getattr(torch, dtype)
        self.model = AutoModelForCausalLM.from_pretrained(model, dtype=kind).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(tokenizer)
        self.done = 0
        self.waiting: list[tuple[str, list[int], SamplingParams]] = []
        print("a model is loaded")

    @property
    def llm_engine(self) -> "LLM":
        return self

    def add_request(self, name: str, prompt: dict[str, Any], how: SamplingParams) -> None:
        self.waiting.append((name, prompt["prompt_token_ids"], how))

    def step(self) -> list[SimpleNamespace]:
        if self.done == DIE_AFTER:
            os._exit(9)
        self.done += 1
        name, prompt, how = self.waiting.pop()
        unfinished = SimpleNamespace(request_id="0", finished=False, outputs=[])
        done = self._complete(prompt, how)
        return [unfinished, SimpleNamespace(request_id=name, finished=True, outputs=[done])]

    @torch.no_grad()
    def _complete(self, prompt: list[int], how: SamplingParams) -> SimpleNamespace:
        assert len(prompt) + how.max_tokens <= self.window
        dice = torch.Generator().manual_seed(how.seed)
        tokens: list[int] = []
        for _ in range(how.max_tokens):
            logits = self.model(torch.tensor([[*prompt, *tokens]])).logits[0, -1].float()
            if how.allowed_token_ids is not None:
                kept = torch.full_like(logits, -torch.inf)
                kept[how.allowed_token_ids] = logits[how.allowed_token_ids]
                logits = kept
            if how.temperature:
                shares = (logits / how.temperature).softmax(0)
                token = int(shares.multinomial(1, generator=dice))
            else:
                token = int(logits.argmax())
            tokens.append(token)
            if token in how.stop_token_ids:
                return SimpleNamespace(token_ids=tokens, finish_reason="stop", stop_reason=token)
            text = self.tokenizer.decode(tokens, skip_special_tokens=False)
            for string in how.stop:
                if string in text:
                    return SimpleNamespace(
                        token_ids=tokens, finish_reason="stop", stop_reason=string
                    )
        return SimpleNamespace(token_ids=tokens, finish_reason="length", stop_reason=None)
