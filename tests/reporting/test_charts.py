"""Charts are drawn from the long table alone, the same as SVG and in a notebook."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from evaluation.reporting import charts
from tests.reporting.frames import long_table

TABLE = charts.headlines(long_table())
STEPS = ["step 10", "step 20", "step 30"]
DRAWN = {
    "curves": lambda tier, items: charts.curves(TABLE, tier, items, levels={"peer": 0.5}),
    "forest": lambda tier, items: charts.forest(TABLE, tier, items, STEPS, "step 20"),
    "heat": lambda tier, items: charts.heat(TABLE, tier, items, STEPS),
}


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("tier", ["tier2", "tier3"])
def test_a_chart_names_its_items_and_has_only_finite_marks(
    kind: str, tier: str, tmp_path: Path
) -> None:
    items = charts.items_of(TABLE, tier)
    path = tmp_path / "chart.svg"
    charts.write_svg(path, DRAWN[kind](tier, items))
    texts = [node.text for node in ElementTree.parse(path).iter() if node.text]
    assert items[0] == "overall"
    assert set(items) <= set(texts)
    assert "NaN" not in path.read_text()


def test_means_come_first_and_only_headlines_are_drawn() -> None:
    other = TABLE.assign(metric="gold_bits_per_byte", value=1.0)
    both = charts.pd.concat([other[other["tier"] == "tier3"], TABLE])
    assert charts.headlines(both)["value"].tolist() == TABLE["value"].tolist()
