"""Which steps a configuration requests: a list, `all` or `{every: N}`."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from evaluation.settings.model import Count, Settings, Step, distinct


class StepInterval(Settings):
    """Every step on disk that is a multiple of `every`."""

    every: Count = Field(description="Steps on disk that are multiples of this.")


def _form(value: object) -> str | None:
    if isinstance(value, list | tuple):
        return "[list]"
    if isinstance(value, dict | StepInterval):
        return "[every]"
    return "[all]" if value == "all" else None


_Listed = Annotated[tuple[Step, ...], Field(min_length=1), AfterValidator(distinct)]
Steps = Annotated[
    Annotated[_Listed, Tag("[list]")]
    | Annotated[Literal["all"], Tag("[all]")]
    | Annotated[StepInterval, Tag("[every]")],
    Discriminator(
        _form,
        custom_error_type="steps",
        custom_error_message="Input should be `[1000, 2000]`, `all` or `{every: 500}`",
    ),
]


def is_requested(step: int, steps: Steps) -> bool:
    if isinstance(steps, tuple):
        return step in steps
    return step % (steps.every if isinstance(steps, StepInterval) else 1) == 0
