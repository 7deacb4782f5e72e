"""Generate answers with vLLM, in vLLM's environment, where this project need not be installed.

    python -m evaluation.scoring.vllm.program FOLDER

`FOLDER/request.json`   `model`, `tokenizer` (folders), `dtype`, `gpus`, `window` (tokens), `memory_share`,
                        `together`, `eos` (ids), `stop` (strings), `vocabulary` (number of ids that may be
                        chosen; null if the model has no others)
`FOLDER/cases.jsonl`    a line for each answer: `tokens` of its prompt, `max_new_tokens`, and
                        `temperature`, `top_p`, `top_k`, `seed`

It writes vLLM's version to `version.json`, and for each case `{"number": line, "tokens": […], "reason": …}`
to `answers.jsonl`, `together` at a time: the tokens without EOS, and `eos`, `stop_string` or `length`.
"""

import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def main(folder: Path) -> None:
    """Write all answers that the files of a folder request.

    Args:
        folder: It has `request.json` and `cases.jsonl`; `version.json` and `answers.jsonl` are added.
    """
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    with open(folder / "cases.jsonl", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    from vllm import LLM  # type: ignore[import-not-found]  # not in this project's environment

    model = LLM(
        model=request["model"],
        tokenizer=request["tokenizer"],
        dtype=request["dtype"],
        tensor_parallel_size=request["gpus"],
        max_model_len=request["window"],
        gpu_memory_utilization=request["memory_share"],
        generation_config="vllm",  # no defaults of the model's: only the settings of the cases
        enable_prefix_caching=True,
        trust_remote_code=False,
    )
    (folder / "version.json").write_text(json.dumps(version("vllm")))
    with open(folder / "answers.jsonl", "a", encoding="utf-8") as file:
        for start in range(0, len(cases), request["together"]):
            numbers = range(start, len(cases))[: request["together"]]
            for line in _answers(model, request, cases, numbers):
                file.write(json.dumps(line) + "\n")
                file.flush()


def _answers(model: Any, request: Line, cases: list[Line], numbers: range) -> Iterator[Line]:
    prompts = [{"prompt_token_ids": cases[number]["tokens"]} for number in numbers]
    ids = request["vocabulary"]
    allowed = None if ids is None else list(range(ids))
    settings = [_settings(request, cases[number], allowed) for number in numbers]
    outputs = model.generate(prompts, settings, use_tqdm=True)  # output shows that it is alive
    for number, output in zip(numbers, outputs, strict=True):
        yield {"number": number, **_ending(output.outputs[0], set(request["eos"]))}


def _settings(request: Line, case: Line, allowed: list[int] | None) -> Any:
    from vllm import SamplingParams

    return SamplingParams(
        max_tokens=case["max_new_tokens"],
        temperature=case["temperature"],
        top_p=case["top_p"],
        top_k=case["top_k"] or -1,
        seed=case["seed"],
        stop=request["stop"],
        stop_token_ids=request["eos"],
        ignore_eos=True,  # only the ids above end an answer
        include_stop_str_in_output=True,
        skip_special_tokens=False,
        spaces_between_special_tokens=False,
        allowed_token_ids=allowed,
    )


def _ending(answer: Any, eos: set[int]) -> Line:
    tokens = list(answer.token_ids)
    if tokens and tokens[-1] in eos:
        return {"tokens": tokens[:-1], "reason": "eos"}
    is_string = answer.finish_reason == "stop" and isinstance(answer.stop_reason, str)
    return {"tokens": tokens, "reason": "stop_string" if is_string else "length"}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
