"""Settings of the checks of answers to probes: one model for each function of `evaluation/checks/`."""

from functools import reduce
from inspect import signature
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, create_model, model_validator

from evaluation.checks import clean, code, json_answers, lists, refusals, wording  # noqa: F401 (register)
from evaluation.checks.declared import CHECKS, KINDS, CheckKind, Function, Number, settings_of
from evaluation.settings.model import Settings


class CheckSettings(Settings):
    """A check of an answer: its name, and in subclasses its settings."""

    check: str

    @property
    def kind(self) -> CheckKind:
        return KINDS[self.check]


class Counted(CheckSettings):
    """A number of things in the answer; at least one unless `at_least: 0` is given."""

    exactly: Number | None = Field(None, description="The number.")
    at_least: Number = Field(1, description="Fewest.")
    at_most: Number | None = Field(None, description="Most.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        bounds = self.model_fields_set & {"exactly", "at_least", "at_most"}
        if not bounds or ("exactly" in bounds and len(bounds) > 1):
            raise ValueError("give either `exactly`, or `at_least`, `at_most` or both")
        if self.at_most is not None and self.at_most < self.at_least:
            raise ValueError("`at_most` is below `at_least`, so no answer could pass")
        return self

    def holds(self, number: int) -> bool:
        """Return whether a count in an answer is `exactly`, or from `at_least` to `at_most`."""
        if self.exactly is not None:
            return number == self.exactly
        return self.at_least <= number and (self.at_most is None or number <= self.at_most)


def _model(name: str, function: Function) -> type[CheckSettings]:
    described = Field(description=str(function.__doc__))
    fields: dict[str, Any] = {"check": (Literal[name], described), **settings_of(function)}
    title = name.title().replace("_", "")
    base = Counted if signature(function).return_annotation is int else CheckSettings
    return create_model(title, __base__=base, __module__=__name__, **fields)


MODELS = tuple(_model(name, function) for name, function in CHECKS.items())
"""The models of all checks, by name in this module, where pickle looks for them."""
globals().update({model.__name__: model for model in MODELS})

if TYPE_CHECKING:
    Check = CheckSettings
else:
    Check = Annotated[reduce(or_, MODELS), Field(discriminator="check")]
    """Any check, distinguished by its key `check`."""
