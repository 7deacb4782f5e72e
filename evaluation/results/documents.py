"""Documents generated from the models of results: JSON schemas, and the list of files and columns."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluation.files import write_json, write_text
from evaluation.results.columns import Column
from evaluation.results.command_output import BridgeTable, CheckpointTable, DoctorReport, Status
from evaluation.results.comparison_file import (
    COMPARISON,
    COMPARISON_COLUMNS,
    COMPARISON_TABLE,
    Comparison,
    ComparisonRow,
)
from evaluation.results.delta_rows import DELTA_COLUMNS, DeltaRow
from evaluation.results.deltas_file import (
    DELTAS,
    STAGE_TABLE,
    ComparedCheckpoint,
    StageDeltas,
    StepDeltas,
)
from evaluation.results.files import FileModel
from evaluation.results.items import models_of
from evaluation.results.objective_rows import ObjectiveRow
from evaluation.results.probe_files import CategoryRates
from evaluation.results.stage_files import (
    QUALITY,
    QUALITY_COLUMNS,
    QUALITY_TABLE,
    RECOMMENDATION,
    SUMMARY_COLUMNS,
    QualityRow,
    Recommendation,
    TaskQuality,
)
from evaluation.results.tier_files import ItemEntry, TierFile
from evaluation.results.units_file import unit_columns
from evaluation.results.verified_files import MeanRate
from evaluation.settings.schema import Parts, anchor, key_table, part_tables
from evaluation.settings.tiers import TIERS

LIST = Path("docs/results.md")
FOLDER = Path("workflow/schemas")

BEGINNING = """# Files of results

This page lists every file of results with its keys or columns. To read a key, for example with `jq`:

    jq .tasks.hellaswag.accuracy $SCRATCH/eval_results/stage3/by_checkpoint/step_4000/tier3_cf.json

[results_in_pandas.md](results_in_pandas.md) shows how to work with the tables.

| in this page | folder |
|---|---|
| `<results>` | `results` of config.yaml |
| `<stage>` | `<results>/<name of the stage>` |
| `<step>` | `<stage>/by_checkpoint/step_<STEP>`, and `<stage>/bridge` for the bridge |

In a table of keys, `.<name>` stands for any name and `[]` for a list. Readers ignore unknown keys and columns, since
later versions may add some. A key that has a default may be missing where it has that value: `kind` of a task that
ranks, or any such key in a file of an external command. JSON schemas of all files are in `workflow/schemas/`.

`python -m evaluation schema` generates this page from the models in `evaluation/results/`.
"""

_PLACES: dict[tuple[str, ...], str] = {
    ("<step>",): "One checkpoint",
    ("<stage>",): "One stage",
    ("<results>",): "All stages and runs",
    ("bridge-table", "doctor", "status", "table"): "Commands with `--json`",
}
"""The page's sections: beginnings of the files' names, and the section's title."""

_CONTENTS = {
    f"<step>/{DELTAS}": "deltas, intervals and the verdict of a step",
    f"<stage>/{DELTAS}": "deltas and verdicts of all steps",
    f"<stage>/{RECOMMENDATION}": "which checkpoint to use next, and why",
    f"<stage>/{QUALITY}": "how much each slice and task can detect",
    f"<results>/{COMPARISON}": "this run compared with others ([runs.md](runs.md)); also `compare --json`",
    f"<stage>/{STAGE_TABLE}": "deltas of all steps, a row per delta",
    "<stage>/summary.csv, summary.parquet": "scores and deltas of a stage, a row per value",
    f"<stage>/{QUALITY_TABLE}": "how much each slice and task can detect, a row per metric",
    f"<results>/{COMPARISON_TABLE}": "this run compared with others, a row per delta",
    "status (JSON)": "what is done, outdated, running, missing or failed",
    "doctor (JSON)": "what would stop a scoring job",
    "bridge-table (JSON)": "deltas and recommendation of every stage",
    "table (JSON)": "checkpoints side by side",
}
"""What is in each file that does not belong to a tier."""

_PARTS: Parts = {
    TierFile: "Header of every tier file",
    ItemEntry: "Every slice and task",
    CategoryRates: "Rates of probes",
    MeanRate: "Mean over prompts",
    ComparedCheckpoint: "Compared checkpoint",
    ObjectiveRow: "Verdict on an objective",
}
"""Parts of several files that have their own table."""


def documents() -> dict[str, tuple[str, type[FileModel]]]:
    """Return, by name of its schema, the place in messages and the model of each file of results that is JSON."""
    models: dict[str, tuple[str, type[FileModel]]] = {}
    for name, tier in TIERS.items():
        reader = models_of(name)
        models[Path(tier.summary_file).stem] = (f"<step>/{tier.summary_file}", reader.file)
        if isinstance(reader.per_item, type):
            lines = f"<step>/{tier.items_file}, each line"
            models[Path(tier.items_file).stem] = (lines, reader.per_item)
    return {
        **models,
        "step_deltas": (f"<step>/{DELTAS}", StepDeltas),
        "stage_deltas": (f"<stage>/{DELTAS}", StageDeltas),
        "recommendation": (f"<stage>/{RECOMMENDATION}", Recommendation),
        "task_quality": (f"<stage>/{QUALITY}", TaskQuality),
        "comparison": (f"<results>/{COMPARISON}", Comparison),
        "status_output": ("status (JSON)", Status),
        "doctor_output": ("doctor (JSON)", DoctorReport),
        "bridge_table_output": ("bridge-table (JSON)", BridgeTable),
        "table_output": ("table (JSON)", CheckpointTable),
    }


def tables() -> dict[str, Sequence[Column]]:
    """Return the files of results that are tables."""
    per_item = {tier.items_file: models_of(name).per_item for name, tier in TIERS.items()}
    return {
        **{f"<step>/{tier.units_file}": unit_columns(tier) for tier in TIERS.values()},
        **{
            f"<step>/{k}": columns
            for k, columns in per_item.items()
            if not isinstance(columns, type)
        },
        f"<stage>/{STAGE_TABLE}": DELTA_COLUMNS,
        "<stage>/summary.csv, summary.parquet": SUMMARY_COLUMNS,
        f"<stage>/{QUALITY_TABLE}": QUALITY_COLUMNS,
        f"<results>/{COMPARISON_TABLE}": COMPARISON_COLUMNS,
    }


def listing() -> str:
    """Return the list of all files with their keys and columns."""
    sections = _sections()
    parts = [BEGINNING, "## Contents\n"]
    for place, title in _PLACES.items():
        files = sorted(file for file in sections if file.startswith(place))
        parts += [f"**{title}**\n", "| file | content |", "|---|---|"]
        parts += [f"| [`{file}`](#{anchor(file)}) | {_content(file)} |" for file in files] + [""]
    links = " · ".join(f"[{title}](#{anchor(title)})" for title in _PARTS.values())
    parts += [f"**Keys that several files have:** {links}\n"]
    for place in _PLACES:
        parts += [sections[file] for file in sorted(sections) if file.startswith(place)]
    return "\n".join([*parts, *part_tables(_PARTS, 2)])


def _sections() -> dict[str, str]:
    """Return the text about each file, by its name; rows of a table link to the table."""
    models = dict(documents().values())
    rows: Parts = {
        DeltaRow: f"`<stage>/{STAGE_TABLE}`",
        QualityRow: f"`<stage>/{QUALITY_TABLE}`",
        ComparisonRow: f"`<results>/{COMPARISON_TABLE}`",
    }
    files: Parts = {
        StageDeltas: f"`<stage>/{DELTAS}`",
        Recommendation: f"`<stage>/{RECOMMENDATION}`",
    }
    parts = {m: {**_PARTS, **rows, **({} if m in files else files)} for m in models.values()}
    return {
        **{f: f"## `{f}`\n\n{key_table(m, parts[m])}\n" for f, m in models.items()},
        **{f: f"## `{f}`\n\n{_column_table(columns)}\n" for f, columns in tables().items()},
    }


def _content(file: str) -> str:
    for tier in TIERS.values():
        if tier.summary_file in file:
            return f"{tier.title}: means, and every {tier.item}"
        if tier.units_file in file:
            return f"{tier.title}: what each metric adds up, for every one of the {tier.unit}"
        if tier.items_file in file:
            return f"{tier.title}: details of the {tier.unit}"
    return _CONTENTS[file]


def _column_table(columns: Sequence[Column]) -> str:
    lines = ["| column | type | meaning |", "|---|---|---|"]
    for column in columns:
        kind = f"{column.type}, or null" if column.nullable else column.type
        lines.append(f"| `{column.name}` | {kind} | {column.description} |")
    return "\n".join(lines)


def write_documents(root: Path) -> Iterator[Path]:
    """Write schemas and list, and yield each file once it is written."""
    for name, (_, model) in documents().items():
        path = root / FOLDER / f"{name}.schema.json"
        write_json(path, model.model_json_schema())
        yield path
    write_text(root / LIST, listing())
    yield root / LIST
