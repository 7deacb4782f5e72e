"""What a number of prompts can show: against draws, and as the page and the docs say it."""

import numpy as np
import pytest

from evaluation.bridge.paired_binary import mcnemar
from evaluation.bridge.power import power, power_sentence, smallest_shown
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("n", "change", "changing"),
    [(56, 0.14, 0.14), (120, 0.08, 0.1), (120, 0.05, 0.3), (30, 0.3, 0.5)],
)
def test_power_is_how_often_the_exact_test_rejects(n: int, change: float, changing: float) -> None:
    draws = 20_000
    up = (changing + change) / 2
    rates = (up, changing - up, 1 - changing)
    counts = np.random.default_rng(0).multinomial(n, rates, draws)[:, :2]
    known = {tuple(one) for one in counts.tolist()}
    shown = {one: mcnemar(*one) < 0.05 and one[0] > one[1] for one in known}
    seen = np.mean([shown[tuple(one)] for one in counts.tolist()])
    assert power(n, change, changing) == pytest.approx(seen, abs=4 * np.sqrt(0.25 / draws))


@pytest.mark.parametrize("changing", [None, 0.1, 0.2, 0.3])
def test_the_smallest_that_is_shown(changing: float | None) -> None:
    found = smallest_shown(120, changing)
    for factor, is_enough in ((1.001, True), (0.999, False)):
        change = found * factor
        assert (power(120, change, changing or change) >= 0.8) == is_enough


def test_few_prompts() -> None:
    said = "With 5 prompts, no change of a rate can be shown with probability 0.8."
    assert said in power_sentence(5, "prompts")
    assert "37 percentage points and all in one direction." in power_sentence(20, "prompts")


def test_the_sentence_of_the_docs_is_computed() -> None:
    text = " ".join((ROOT / "docs" / "verdicts.md").read_text().split())
    assert power_sentence(105, "prompts") in text
