"""What a user may change in tasks whose answers are generated and verified."""

from typing import Any

from tests.histories.beginning import SAMPLED, STRATA
from tests.histories.model import Model
from tests.histories.registry import edit, put, values
from tests.workflow.world import FIRST_LETTER, LAST_LETTER

SECTION = "generation_tasks"
VERIFIERS: tuple[dict[str, Any], ...] = (
    {"lenient": LAST_LETTER},
    {"loose": LAST_LETTER},
    {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    {"strict": {**FIRST_LETTER, "ignore_case": True}, "lenient": LAST_LETTER},
)


@edit(values(SECTION, "prompt", "{{ answers[1] }}?", "{{ answers[0] }}, {{ answers[1] }}:"))
def answers_prompt(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, SECTION, "prompt", (suite, name), value)


@edit(values(SECTION, "stop", None, ["e"], ["e", "o"], [*"abcdefghijklmnopqrstuvwxyz"]))
def answers_stop(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, SECTION, "stop", (suite, name), value)


@edit(
    values(
        SECTION,
        "sampling",
        *(None, SAMPLED, {**SAMPLED, "n": 4}, {**SAMPLED, "seed": 2}),
        {**SAMPLED, "temperature": 0.5},
    )
)
def answers_sampling(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, SECTION, "sampling", (suite, name), value)


@edit(values(SECTION, "max_new_tokens", 3, 6))
def answers_length(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, SECTION, "max_new_tokens", (suite, name), value)


@edit(values(SECTION, "limit", None, 4, 6))
def answers_limit(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, SECTION, "limit", (suite, name), value)


@edit(values(SECTION, "document", {"gold": "'a'"}, {"gold": "'b'"}))
def answers_document(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, SECTION, "document", (suite, name), value)


@edit(values(SECTION, "verifiers", *VERIFIERS))
def answers_verifiers(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, SECTION, "primary", (suite, name), None)
    put(model, SECTION, "verifiers", (suite, name), value)


@edit(values(SECTION, "answer_after", None, " ", "e"))
def answers_after(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, SECTION, "answer_after", (suite, name), value)


@edit(values(SECTION, "strata", None, {"label": "{{ label }}"}, STRATA))
def answers_strata(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, SECTION, "strata", (suite, name), value)


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
