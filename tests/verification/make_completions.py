"""A small model's own answers to real prompts, greedily, for others to judge beside the canned ones.

python -m tests.verification.make_completions ../shared .demo/models/smollm2-135m-instruct
"""

import gzip
import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.verification.make_references import FILES, rows_of

PROMPTS = 12
"""Of each task, spread over its rows."""

ENDING = {
    "gsm8k": "\nEnd your answer with a line `#### N`, N being the number.",
    "math_500": "\nPut your final answer within \\boxed{}.",
}


def main(shared: Path, folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    target = Path(__file__).parent / "own_completions.jsonl.gz"
    with gzip.GzipFile(target, "wb", mtime=0) as file:
        for task in FILES:
            rows = rows_of(shared, task)
            numbers = range(0, len(rows), len(rows) // PROMPTS)
            asked = [
                str(rows[n].get("question") or rows[n].get("problem") or rows[n]["prompt"])
                + ENDING.get(task, "")
                for n in numbers
            ]
            inputs = tokenizer.apply_chat_template(
                [[{"role": "user", "content": text}] for text in asked],
                add_generation_prompt=True,
                return_tensors="pt",
                return_dict=True,
                padding=True,
            )
            answers = model.generate(**inputs, max_new_tokens=200, do_sample=False)
            texts = tokenizer.batch_decode(
                answers[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
            )
            for number, text in zip(numbers, texts, strict=True):
                record = {"task": task, "row": number, "completion": text}
                file.write(json.dumps(record).encode() + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
