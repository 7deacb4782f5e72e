"""The page of model classes is what they do here: some of them, and in the long run all."""

import re

import pytest
import transformers

from tests.scoring.families import PAGE, abilities, class_names, group, silent

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


def is_listed(name: str) -> bool:
    """Whether the page has a class in the group of what it does here."""
    kind = group(abilities(name))
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith(f"- **{kind}** (")]
    return kind == "not tried" or any(f"`{name}`" in line for line in lines)


@pytest.mark.parametrize("name", SOME)
def test_a_class_does_what_its_row_says(name: str) -> None:
    with silent():
        assert is_listed(name)


def test_every_class_does_what_its_row_says() -> None:
    with silent():
        assert [name for name in class_names() if not is_listed(name)] == []
