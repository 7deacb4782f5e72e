"""Histories drawn by Hypothesis: what is done next depends on what was done before."""

from typing import Any

from hypothesis import strategies as st

from tests.histories.accidents import ACCIDENTS
from tests.histories.edits_of_runs import EDITS
from tests.histories.history import Action
from tests.histories.model import Model

FEWEST, MOST = 5, 10
MOMENTS = 40
"""Renamed files, in a run that makes all there is about sixty."""


@st.composite
def histories(draw: Any, model: Model, *, fewest: int = FEWEST, most: int = MOST) -> list[Action]:
    """A first run, mostly, then changes, most of them with a run behind them, some cut short."""
    model = model.copy()
    actions: list[Action] = [["run", "all"]] if draw(_chance(8)) else []
    changes = draw(st.integers(fewest, most))
    while changes > 0:
        action = draw(_actions(model))
        changes -= action[0] != "repaired"
        actions.append(action)
        follows = draw(st.sampled_from(("run",) * 11 + ("killed",) * 3 + ("stopped",) + ("",) * 5))
        if follows == "run":
            actions.append(["run", draw(_targets(model))])
        elif follows and not model.impossible():
            changes -= 1
            actions.append([follows, draw(st.integers(1, MOMENTS))])
    return actions


def _chance(of_ten: int) -> st.SearchStrategy[bool]:
    return st.integers(0, 9).map(lambda number: number < of_ten)


@st.composite
def _actions(draw: Any, model: Model) -> Action:
    if model.impossible() and draw(_chance(7)):
        model.repair()
        return ["repaired"]
    kind = draw(st.sampled_from("eeeeeeeeaaaacc"))
    if kind == "a":
        name = draw(st.sampled_from(sorted(ACCIDENTS)))
        return [name, *draw(st.sampled_from(ACCIDENTS[name][0]))]
    names = [name for name in EDITS if name.startswith("checkpoint") == (kind == "c")]
    possible = {name: list(EDITS[name][0](model)) for name in names}
    name = draw(st.sampled_from([name for name in names if possible[name]]))
    arguments = draw(st.sampled_from(possible[name]))
    EDITS[name][1](model, *arguments)
    return [name, *arguments]


def _targets(model: Model) -> st.SearchStrategy[str]:
    """What cannot be fulfilled is told of the whole; a part of it may be possible."""
    if model.impossible() or model.doubtful():
        return st.just("all")
    return st.sampled_from(["all"] * 6 + ["prefill", *model.stages])
