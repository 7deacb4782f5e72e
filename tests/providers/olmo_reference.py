"""Render and judge in olmo-eval's environment what its reference files hold, in one process.

    python -m tests.providers.olmo_reference FOLDER < requests.jsonl

Each request is one of `render`; its `cases`, if there are any, are judged as well. A line is answered
for each: `lines`, `meta` and `scores`, or `refused`. Mirrors may be shorter than the hub's datasets.
"""

import json
import sys
from pathlib import Path
from typing import Any

import datasets

from evaluation.providers.adapters import olmo_eval, olmo_eval_data
from evaluation.providers.adapters.contract import Refused, read_lines


def answered(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    try:
        meta = olmo_eval.render(request, folder)
    except Refused as error:
        return {"refused": str(error)}
    lines = list(read_lines(folder / "documents.jsonl"))
    score = olmo_eval.scorer(request, []) if request["cases"] else None
    cases = request["cases"]
    scores = [score(lines[number]["document"], text) for number, text in cases] if score else []
    return {"lines": lines, "meta": meta, "scores": scores}


if __name__ == "__main__":
    olmo_eval_data.EXAMPLE_ROWS.clear()
    load = datasets.load_dataset
    for line in sys.stdin:
        datasets.load_dataset = load
        print(json.dumps(answered(json.loads(line), Path(sys.argv[1]))), flush=True)
