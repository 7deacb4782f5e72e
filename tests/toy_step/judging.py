"""A step for a test: it judges all results alike, but not those of step 20."""

from evaluation.dependencies.making import Made
from evaluation.dependencies.places import Place
from evaluation.files import write_json


def judge(place: Place) -> Made:
    if place.step == 20:
        return Made(error="step 20 is above judgement")
    write_json(place.folder / "toyjudge.json", {"verdict": "fine"})
    return Made([place.folder / "toyjudge.json"])
