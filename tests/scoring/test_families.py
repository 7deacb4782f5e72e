"""The page of model classes is what they do here: some of them, and in the long run all."""

import re

import pytest
import transformers

from tests.scoring.families import PAGE, abilities, class_names, row, silent

SOME = (
    "LlamaForCausalLM",
    "Gemma3ForCausalLM",
    "MambaForCausalLM",
    "GraniteForCausalLM",
)


def test_the_page_is_of_this_version_and_names_every_class() -> None:
    text = PAGE.read_text()
    assert f"transformers {transformers.__version__}" in text
    assert set(re.findall(r"`(\w+)`", text)) >= set(class_names())


@pytest.mark.parametrize("name", SOME)
def test_a_class_does_what_its_row_says(name: str) -> None:
    with silent():
        assert row(name, abilities(name)) in PAGE.read_text()


def test_every_class_does_what_its_row_says() -> None:
    text = PAGE.read_text()
    with silent():
        rows = {name: row(name, abilities(name)) for name in class_names()}
    wrong = [one for one in rows.values() if "not tried" not in one and one not in text]
    assert not wrong
