"""Has lm-evaluation-harness and lighteval judge the canned completions, for the tests to compare with.

Run it in the environment of each, with NLTK's data in NLTK_DATA; the file is kept beside this one:

    pip install 'lm_eval[math,ifeval]==0.4.13' && python make_references.py lm_eval ../../../shared
    pip install 'lighteval[math,extended_tasks]==0.13.0' spacy && python make_references.py lighteval …

They also judge `own_completions.jsonl.gz`: of each task every (rows / 12)th prompt, answered by
SmolLM2-135M-Instruct in its chat template, greedily, with 200 tokens at most; GSM8K's prompts ask for a
last line `#### N`, MATH's for `\\boxed{}`.

A line of the file: task, metric, and one character a completion, in the order of `cases`:
0 or 1; of several instructions the number followed, in base 36; x where the judge itself failed.
"""

import gzip
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

try:
    import canned
except ImportError:
    from tests.verification import canned

import pyarrow.parquet as pq

HERE = Path(__file__).parent
Judge = Callable[[dict[str, Any], str], dict[str, int]]
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
LEVELS = ("prompt_strict", "instruction_strict", "prompt_loose", "instruction_loose")
FILES = {
    "gsm8k": "gsm8k/main/test-00000-of-00001.parquet",
    "math_500": "MATH-500/default/test-00000-of-00001.parquet",
    "ifeval": "IFEval/default/train-00000-of-00001.parquet",
    "ifbench": "IFBench_test/default/train-00000-of-00001.parquet",
}
MAKERS = {
    "gsm8k": canned.gsm8k,
    "math_500": canned.mathematics,
    "ifeval": canned.instructions,
    "ifbench": canned.instructions,
}


def rows_of(shared: Path, task: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(shared / "data/generative" / FILES[task]).to_pylist()
    return rows


def cases(shared: Path, task: str) -> Iterator[tuple[int, dict[str, Any], str, str]]:
    """(number of the row, row, name, completion): the canned ones, then a model's own."""
    rows = rows_of(shared, task)
    yield from canned.cases(rows, MAKERS[task], pairs=task == "math_500")
    with gzip.open(HERE / "own_completions.jsonl.gz", "rt") as lines:
        for record in map(json.loads, lines):
            if record["task"] == task:
                yield 0, rows[record["row"]], "own", record["completion"]


def of_levels(strict: list[bool], loose: list[bool]) -> dict[str, int]:
    counts = (int(all(strict)), sum(strict), int(all(loose)), sum(loose))
    return dict(zip(LEVELS, counts, strict=True))


def seed(row: dict[str, Any]) -> None:
    """What the instructions leave to chance is drawn as we draw it."""
    from langdetect import DetectorFactory

    DetectorFactory.seed = 0
    random.seed(row["prompt"])


def lm_eval_judges() -> dict[str, Judge]:
    from lm_eval.tasks.hendrycks_math import utils as hendrycks
    from lm_eval.tasks.ifeval import utils as ifeval
    from lm_eval.tasks.minerva_math import utils as minerva

    def of_math(row: dict[str, Any], completion: str) -> dict[str, int]:
        boxed = minerva.last_boxed_only_string(row["solution"])
        answer = minerva.normalize_final_answer(minerva.remove_boxed(boxed))
        judged = minerva.process_results({**row, "answer": answer}, [completion])
        mine = hendrycks.last_boxed_only_string(completion)
        try:
            spelled = hendrycks.is_equiv(
                mine and hendrycks.remove_boxed(mine), hendrycks.remove_boxed(boxed)
            )
        except AssertionError:
            spelled = False
        return {**judged, "boxed": int(spelled)}

    def of_ifeval(row: dict[str, Any], completion: str) -> dict[str, int]:
        asked = ifeval.InputExample(
            row["key"], row["instruction_id_list"], row["prompt"], row["kwargs"]
        )
        seed(row)
        strict = ifeval.test_instruction_following_strict(asked, completion)
        seed(row)
        loose = ifeval.test_instruction_following_loose(asked, completion)
        return of_levels(strict.follow_instruction_list, loose.follow_instruction_list)

    return {"gsm8k": lm_eval_gsm8k(), "math_500": of_math, "ifeval": of_ifeval}


def lm_eval_gsm8k() -> Judge:
    import yaml
    from lm_eval import tasks
    from lm_eval.api.metrics import exact_match_fn
    from lm_eval.filters.extraction import RegexFilter

    task = yaml.safe_load((Path(tasks.__path__[0]) / "gsm8k/gsm8k.yaml").read_text())
    compared = {key: task["metric_list"][0][key] for key in ("ignore_case", "regexes_to_ignore")}
    filters = {
        entry["name"]: RegexFilter(
            **{key: value for key, value in entry["filter"][0].items() if key != "function"}
        )
        for entry in task["filter_list"]
    }

    def of_gsm8k(row: dict[str, Any], completion: str) -> dict[str, int]:
        found = {
            name: next(iter(regex.apply([[completion]], [row])))[0]
            for name, regex in filters.items()
        }
        return {
            name: int(
                exact_match_fn(predictions=[text], references=[row["answer"]], **compared)[
                    "exact_match"
                ]
            )
            for name, text in found.items()
        }

    return of_gsm8k


def lighteval_judges() -> dict[str, Judge]:
    import nltk

    nltk.download = lambda *_, **__: True
    from lighteval.metrics.metrics import Metrics
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc
    from lighteval.tasks.tasks import gsm8k, math_500
    from lighteval.tasks.tasks.ifbench import instructions
    from lighteval.tasks.tasks.ifbench.main import IFBench, ifbench_prompt
    from lighteval.tasks.tasks.ifeval.main import IFEvalMetrics, ifeval_prompt

    instructions.RESOURCES_DOWNLOADED = True
    number = Metrics.expr_gold_metric.value.sample_level_fn
    formula = Metrics.pass_at_k_math(sample_params={"k": 1, "n": 1}).sample_level_fn

    def scorer(metric: Any, prompt: Callable[..., Doc]) -> Judge:
        def judge(row: dict[str, Any], completion: str) -> dict[str, int]:
            response = ModelResponse(text=[completion])
            return {"extractive_match": int(metric.compute(prompt(row, "task"), response))}

        return judge

    def of_instructions(metric: Any, prompt: Callable[..., Doc]) -> Judge:
        def judge(row: dict[str, Any], completion: str) -> dict[str, int]:
            seed(row)
            asked = prompt({**row, "kwargs": [dict(given) for given in row["kwargs"]]}, "task")
            scores = metric.compute(asked, ModelResponse(text=[completion]))
            return of_levels(scores["inst_level_strict_acc"], scores["inst_level_loose_acc"])

        return judge

    return {
        "gsm8k": scorer(number, gsm8k.gsm8k_prompt),
        "math_500": scorer(formula, math_500.math_500_prompt),
        "ifeval": of_instructions(IFEvalMetrics(), ifeval_prompt),
        "ifbench": of_instructions(IFBench(), ifbench_prompt),
    }


def main(judge: str, shared: Path) -> None:
    judges = {"lm_eval": lm_eval_judges, "lighteval": lighteval_judges}[judge]()
    with gzip.GzipFile(HERE / f"references_{judge}.jsonl.gz", "wb", mtime=0) as file:
        for task, judged_by in judges.items():
            verdicts: list[dict[str, int] | None] = []
            for _, row, _, completion in cases(shared, task):
                try:
                    verdicts.append(judged_by(row, completion))
                except Exception as error:  # noqa: BLE001 - that it fails is its verdict
                    print(task, repr(completion[:60]), repr(error)[:200], file=sys.stderr)
                    verdicts.append(None)
            metrics = next(verdict for verdict in verdicts if verdict is not None)
            for metric in metrics:
                line = "".join("x" if v is None else DIGITS[v[metric]] for v in verdicts)
                record = {"task": task, "metric": metric, "verdicts": line}
                file.write(json.dumps(record).encode() + b"\n")
                print(task, metric, len(line), {c: line.count(c) for c in sorted(set(line))})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
