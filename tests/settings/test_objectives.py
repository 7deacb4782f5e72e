"""Objectives are held against what a stage's suites have, before anything runs."""

import pytest

from evaluation.errors import ConfigError
from evaluation.settings.aims import Aim
from evaluation.settings.objectives import settled_aim
from evaluation.settings.suites import Suite

SUITE = Suite.model_validate(
    {
        "slices": {
            "web": {"dataset": "made/web", "tokens": 64, "group": "text"},
            "code": {"dataset": "made/code", "tokens": 64},
        },
        "groups": {"all_text": {"tier": "tier2", "members": ["web", "code"]}},
    }
)


def aim(tier: str, group: str | None = None) -> Aim:
    return Aim.model_validate({"tier": tier, "want": "keep", "margin": 0.1, "group": group})


@pytest.mark.parametrize("group", [None, "text", "all_text"])
def test_an_aim_at_what_is_there_is_left_as_it_is(group: str | None) -> None:
    assert settled_aim(aim("tier2", group), SUITE, "here") == aim("tier2", group)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            aim("tier2", "all_txt"),
            "here: group: tier2 of the stage's suites has no group 'all_txt' (did you mean all_text?);"
            " there are all_text, text",
        ),
        (aim("tier3"), "here: the stage's suites hold nothing of tier3; correct the aim or the suites"),
        (aim("tier4", "tone"), "here: the stage's suites hold nothing of tier4; correct the aim"),
    ],
)  # fmt: skip
def test_an_aim_at_nothing_is_refused(wrong: Aim, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settled_aim(wrong, SUITE, "here")
    assert str(caught.value).startswith(sentence)
