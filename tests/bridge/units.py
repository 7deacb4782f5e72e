"""Tables of units beside tier files that a test wrote or edited."""

import json
from pathlib import Path

from evaluation.grading.units import units_of_files, write_units
from evaluation.settings.tiers import TIERS


def write_all_units(folder: Path) -> None:
    """Write the units of each tier in a folder as for files that an external program wrote."""
    for tier in TIERS.values():
        path = folder / tier.summary_file
        if path.exists():
            content = json.loads(path.read_text(encoding="utf-8"))
            write_units(tier, folder, units_of_files(tier, content, folder))
