"""What a page holds."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

from evaluation.reporting.pages.stage_page import stage_page
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.reporting.tables.summary import write_tables
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.settings.plan import StagePlan

STEPS = (10, 20, 30)


def write_report(plan: StagePlan, steps: tuple[int, ...]) -> Path:
    """Tables and page of a stage, as the command writes them."""
    found = read_stage(plan, steps)
    write_tables(found)
    page = plan.results / "report.html"
    page.write_text(stage_page(found, write_quality(found)), encoding="utf-8")
    return page


def page_data(page: Path) -> dict[str, Any]:
    """What a page draws from."""
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return content
