"""Try tasks of lighteval and lm-evaluation-harness on the available data, for docs/provider_tasks.md.

    python -m benchmarks.provider_tasks [--mirrors FOLDER] [--output FILE] [PROVIDER:TASK …]

Each task is rendered, and the provider verifies its own golds, an empty answer and a wrong one. For
ranked choices (`#choices`) only the questions are rendered. A task whose dataset is neither in the
mirrors nor reachable is listed as not tried, with the reason.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.errors import EvaluationError
from evaluation.providers.program import Provider
from evaluation.providers.render import Document, RankedQuestion, Rendered, render
from evaluation.providers.score import CaseLimits, score, verdict_of
from evaluation.settings.provided import VERSIONS, Providers

TASKS: dict[str, tuple[str, ...]] = {
    "lm_eval": (
        *("gsm8k", "gsm8k_cot", "gsm8k_cot_zeroshot", "gsm8k_cot_self_consistency", "ifeval"),
        *("minerva_math500", "hendrycks_math500", "minerva_math", "mmlu_pro"),
        *("gpqa_diamond_cot_zeroshot",),
        *("humaneval", "mbpp", "arc_challenge", "wikitext", "triviaqa", "drop"),
        *("arc_challenge#choices", "hellaswag#choices", "piqa#choices", "mmlu_anatomy#choices"),
    ),
    "lighteval": (
        *("gsm8k", "math_500", "math_500_gpassk", "ifeval", "ifbench_test", "ifbench_multiturn"),
        *("aime25", "gpqa:diamond", "mmlu_pro", "gsm_plus", "math"),
        *("lcb:codegeneration", "mt_bench", "simpleqa", "hle", "tiny"),
        *("hellaswag", "mmlu:anatomy", "arc:challenge#choices", "arc:easy#choices", "sciq#choices"),
    ),
}

LEFT_OUT = """
## Packages that lm-evaluation-harness's environment lacks

lm-evaluation-harness has 13,123 tasks, whose definitions name 414 files of code. 28 of these files do what is
refused above. The code of 118 tasks cannot be imported. An error then names the missing package;
install it into `.venv-lm-eval` to use the task.

| missing | tasks |
|---|---|
| `torch` (2 GB), `bert_score` with it | `evalita-mp`, `norsumm`, `mimic_repsum` |
| modules that transformers 5 and datasets 5 removed | \
`coqa`, `record`, `xquad`, `norquad`, `scrolls`, `bec2016eu` |
| data fetched from the network on import | `meddialog`, `evalita-sp`, `niah` (RULER) |
| planners, `spacy`, `emoji`, `pymorphy3`, SWI-Prolog | \
`acp_*_gen`, `ifeval_ca`, `ja_leaderboard_xlsum`, `libra`, `slr_bench` |
"""

TITLES = {"lighteval": "lighteval", "lm_eval": "lm-evaluation-harness"}
ROWS = 20
WRONG = "I do not know."


@dataclass(frozen=True)
class Tried:
    """The outcome of a task, a row of the table."""

    provider: str
    task: str
    verdict: str
    what: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", metavar="PROVIDER:TASK", help="all known ones if none")
    parser.add_argument("--mirrors", type=Path, default=Path("../shared/data"))
    parser.add_argument("--nltk-data", type=Path, default=Path(".demo/nltk_data"))
    parser.add_argument("--output", type=Path, default=Path("docs/provider_tasks.md"))
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_DOWNLOAD_TIMEOUT", "5")
    named = [one.split(":", 1) for one in options.tasks]
    selected = named or [[name, task] for name, tasks in TASKS.items() for task in tasks]
    rows = []
    for name, task in selected:
        python = Providers().python(name)
        provider = Provider(name, python, VERSIONS[name], options.nltk_data)
        rows.append(tried(provider, task, mirrors_in(options.mirrors)))
        print(*vars(rows[-1]).values(), sep="  ", flush=True)
        options.output.write_text(page(rows), encoding="utf-8")  # after each task


def mirrors_in(folder: Path) -> dict[str, str]:
    """Return the local folders of datasets: those of generative tasks have short names, others the hub's."""
    generative = folder.resolve() / "generative"
    known = {
        "openai/gsm8k": "gsm8k",
        "HuggingFaceH4/MATH-500": "MATH-500",
        "google/IFEval": "IFEval",
        "allenai/IFBench_test": "IFBench_test",
    }
    return {"*": str(folder.resolve())} | {name: str(generative / at) for name, at in known.items()}


def tried(provider: Provider, task: str, mirrors: dict[str, str]) -> Tried:
    name, _, shape = task.partition("#")
    request = {"task": name, "chat": False, "num_fewshot": None, "limit": ROWS, "mirrors": mirrors}
    try:
        if shape:
            return _ranked(provider, name, request)
        found = render(provider, task, request, Document, seconds=600)
        outcome = ", ".join(_verified(provider, task, found))
    except EvaluationError as error:
        reason = str(error).removeprefix(f"{task}: ")
        reason = reason.removeprefix(f"{name}: ")
        if "if its data cannot be had" in reason or "the mirror" in reason:
            reason = reason.partition(" (")[0].replace(mirrors["*"], "…")
            return Tried(provider.name, name, "not tried", reason)
        return Tried(provider.name, name, "refused", reason)
    limit = found.info.max_new_tokens or "required"
    what = f"{len(found.documents)} of {found.info.documents} rows; tokens: {limit}; {outcome}"
    return Tried(provider.name, task, "works", what)


def _ranked(provider: Provider, name: str, request: dict[str, object]) -> Tried:
    """Try a task of ranked choices, of which only the questions are the provider's."""
    found = render(provider, name, request, RankedQuestion, seconds=600)
    choices = sorted({len(one.choices) for one in found.documents})
    parts = len(found.info.num_fewshot)
    what = f"ranked choices: {len(found.documents)} of {found.info.documents} rows, "
    what += f"{parts} parts, " if parts > 1 else ""
    return Tried(provider.name, name, "works", what + f"{' to '.join(map(str, choices))} choices")


def _verified(provider: Provider, task: str, found: Rendered[Document]) -> Iterator[str]:
    """Yield for each metric how many golds pass, and how many answers it fails on."""
    golds = [(one.document, one.gold or "") for one in found.documents]
    others = [(golds[0][0], ""), (golds[0][0], WRONG)]
    outcomes = score(provider, {"task": task}, [*golds, *others], CaseLimits(60, 4096))
    for metric in outcomes[0].scores or {}:
        credits = [verdict_of(metric, one, "").credit for one in outcomes]
        right = sum(credit == 1 for credit in credits[: len(golds)])
        failed = sum(credit is None for credit in credits)
        yield f"`{metric}` passes {right} of {len(golds)} bare golds, fails on {failed}"


def page(rows: Sequence[Tried]) -> str:
    lines = [
        "# Tasks of lighteval and lm-evaluation-harness that were tried",
        "",
        "This page lists which tasks of lighteval and lm-evaluation-harness work here, and which are "
        "refused.",
        "`python -m benchmarks.provider_tasks` generates it. It renders each task on the first rows "
        "of its dataset. The task's",
        "metrics then verify its own golds, an empty answer and a wrong answer.",
        "",
        "A bare gold need not pass if a metric requires a format. Instructions have no golds; an "
        "empty answer, or",
        "what the task names instead, replaces them. Tasks that are not listed were not tried.",
    ]
    for name in dict.fromkeys(row.provider for row in rows):
        title = f"{TITLES[name]} {VERSIONS[name]}"
        lines += ["", f"## {title}", "", "| task | | result |", "|---|---|---|"]
        for row in rows:
            if row.provider == name:
                what = row.what.replace("|", "\\|")
                lines.append(f"| `{row.task}` | {row.verdict} | {what} |")
    return "\n".join(lines) + "\n" + LEFT_OUT


if __name__ == "__main__":
    main()
