"""What a user may change in tasks whose answers are generated and verified."""

from typing import Any

from tests.histories.beginning import SAMPLED, STRATA
from tests.histories.model import Model
from tests.histories.registry import edit, put, putting, values
from tests.workflow.world import FIRST_LETTER, LAST_LETTER

SECTION = "generation_tasks"
PROMPTS = ("{{ answers[1] }}?", "{{ answers[0] }}, {{ answers[1] }}:")
STOPS = (None, ["e"], ["e", "o"], [*"abcdefghijklmnopqrstuvwxyz"])
SAMPLINGS = (
    *(None, SAMPLED, {**SAMPLED, "n": 4}, {**SAMPLED, "seed": 2}),
    {**SAMPLED, "temperature": 0.5},
)
VERIFIERS: tuple[dict[str, Any], ...] = (
    {"lenient": LAST_LETTER},
    {"loose": LAST_LETTER},
    {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    {"strict": {**FIRST_LETTER, "ignore_case": True}, "lenient": LAST_LETTER},
)

putting(SECTION, "prompt", *PROMPTS, name="answers_prompt")
putting(SECTION, "stop", *STOPS, name="answers_stop")
putting(SECTION, "sampling", *SAMPLINGS, name="answers_sampling")
putting(SECTION, "max_new_tokens", 3, 6, name="answers_length")
putting(SECTION, "limit", None, 4, 6, name="answers_limit")
putting(SECTION, "document", {"gold": "'a'"}, {"gold": "'b'"}, name="answers_document")
putting(SECTION, "answer_after", None, " ", "e", name="answers_after")
putting(SECTION, "strata", None, {"label": "{{ label }}"}, STRATA, name="answers_strata")


@edit(values(SECTION, "verifiers", *VERIFIERS))
def answers_verifiers(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, SECTION, "primary", (suite, name), None)
    put(model, SECTION, "verifiers", (suite, name), value)


def _primaries(model: Model) -> list[tuple[Any, ...]]:
    possible = values(SECTION, "primary", None, "lenient")(model)
    return [
        (suite, name, value)
        for suite, name, value in possible
        if value is None or value in model.suites[suite][SECTION][name]["verifiers"]
    ]


@edit(_primaries)
def answers_primary(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, SECTION, "primary", (suite, name), value)
