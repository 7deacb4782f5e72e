"""Charts are drawn from the long table alone, the same as SVG and in a notebook."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from evaluation.reporting import charts
from tests.reporting.frames import long_table

TABLE = charts.headlines(long_table())
STEPS = ["step 10", "step 20", "step 30"]
DRAWN = {
    "curves": lambda kind, items: charts.curves(TABLE, kind, items),
    "joined": lambda kind, items: charts.curves(TABLE, kind, items, x="tokens"),
    "forest": lambda kind, items: charts.forest(TABLE, kind, items, STEPS, "step 20"),
    "heat": lambda kind, items: charts.heat(TABLE, kind, items, STEPS),
}


@pytest.mark.parametrize("chart", DRAWN)
@pytest.mark.parametrize("kind", charts.kinds_of(TABLE)[:2])
def test_a_chart_names_its_items_and_has_only_finite_marks(
    chart: str, kind: charts.Kind, tmp_path: Path
) -> None:
    items = charts.items_of(charts.of_kind(TABLE, kind))
    path = tmp_path / "chart.svg"
    charts.write_svg(path, DRAWN[chart](kind, items))
    texts = [node.text for node in ElementTree.parse(path).iter() if node.text]
    assert items[0] == "overall"
    assert set(items) <= set(texts)
    assert "NaN" not in path.read_text()


def test_means_come_first_and_only_headlines_are_drawn() -> None:
    other = TABLE.assign(metric="gold_bits_per_byte", value=1.0)
    both = charts.pd.concat([other[other["tier"] == "tier3"], TABLE])
    assert charts.headlines(both)["value"].tolist() == TABLE["value"].tolist()
