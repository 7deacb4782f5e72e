"""Figures for papers: whole SVG files, the same for the same results."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evaluation.errors import ResultsError
from evaluation.reporting.tables.figures import write_figures
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import make_plans
from tests.reporting.pages import STEPS, page_data, write_report


def texts(path: Path) -> list[str]:
    root = ET.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return [node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text")]


def test_curves_and_forests_name_their_items(reported: dict[str, StagePlan]) -> None:
    plan = reported["second"]
    paths = plan.figures
    assert len(paths) == 7
    curves = texts(paths["curves", "tier2"])
    assert {"web", "code", "overall", "step", "ppl", "perplexity"} <= set(curves)
    forest = texts(paths["forest", "tier3"])
    assert [name for name in forest if name in ("quiz", "exam", "overall")]
    assert "of step 30 against first/100" in forest
    assert "Δ gold_bits_per_byte (lower is better), 95 % interval" in forest
    measures = texts(paths["measures", "tier3"])
    assert [text for text in measures if text.startswith("gold_bits")] == ["gold_bits_per_byte"]
    assert {"bits per byte", "correct_probability, %"} <= set(measures)
    assert "acc, %" in texts(paths["curves", "tier3"])
    assert any("Δ acc, points, 95 % interval" in text for text in forest)
    assert measures.count("quiz") == measures.count("overall") == len(TIERS["tier3"].secondary)
    title = paths["curves", "tier2"].read_text().split("<dc:title>")[1]
    assert title.startswith("second: Perplexity, curves<")
    before = {path: path.read_bytes() for path in paths.values()}
    assert write_figures(plan) == list(paths.values())
    assert {path: path.read_bytes() for path in paths.values()} == before


def test_a_stage_without_results_has_figures_that_say_so(tmp_path: Path) -> None:
    plan = make_plans(tmp_path)["second"]
    with pytest.raises(ResultsError, match="run Snakemake again"):
        write_figures(plan)
    assert page_data(write_report(plan, STEPS))["series"] == []
    assert pq.read_table(plan.results / "summary.parquet").num_rows == 0
    write_figures(plan)
    paths = plan.figures
    assert texts(paths["curves", "tier2"]) == ["no results of tier2 yet"]
    assert "no step has been compared" in texts(paths["forest", "tier4"])[0]
