"""Tables of units beside tier files that a test wrote or edited."""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluation.files import write_parquet
from evaluation.grading.probes import probe_units
from evaluation.grading.texts import question_units
from evaluation.metrics.measures import measure_questions
from evaluation.results.units import Units, units_table
from evaluation.settings.tiers import TIERS, Tier


def write_units(tier: Tier, folder: Path, units: Mapping[str | None, Units]) -> None:
    write_parquet(folder / tier.units_file, units_table(tier, units))


def write_all_units(folder: Path) -> None:
    """Write the units of the candidates and prompts in a folder, by what its summaries say of them."""
    tier = TIERS["tier3"]
    if (folder / tier.items_file).exists():
        table = pq.read_table(folder / tier.items_file)
        units: dict[str | None, Units] = {}
        for name, entry in json.loads((folder / tier.summary_file).read_text())["tasks"].items():
            rows = table.filter(pc.equal(table["task"], name))
            questions = measure_questions(rows, entry.get("kind", "ranked"))
            units[name] = question_units(tier, questions, entry.get("primary", "raw"))
        write_units(tier, folder, units)
    tier = TIERS["tier4"]
    if (folder / tier.summary_file).exists():
        prompts = json.loads((folder / tier.summary_file).read_text()).get("prompts")
        if prompts:
            write_units(tier, folder, probe_units(tier, prompts))
